package io.kvcache.core.policy;

/// The constants of [ImportancePolicy]. All lengths count in blocks used, relative to the blocks that are
/// resident, so that none depends on a block's size, a machine's speed or a load's rate.
///
/// @param halfLife uses after which what was learned weighs half, as a multiple of the resident blocks
/// @param ghosts evicted blocks that are remembered, as a multiple of the resident blocks
/// @param priorRate what is believed before anything is seen: a block unused for an age is used within
///     as many uses more with about this probability, at every age. That is the law that makes LRU
///     right
/// @param priorEvents uses that it takes to doubt that belief
/// @param groupEvents uses that it takes for blocks used once, those used twice and those used
///     more often to differ from all blocks, and for each step of use to differ from those used
///     more often
/// @param classEvents uses that it takes for a class to differ from its group. Blocks of one
///     request are used together, so it takes many
/// @param labelEvents uses that it takes for a label or a turn gap to differ from the others, and for
///     each of its classes to differ from the class
public record ImportanceConfig(
        double halfLife,
        double ghosts,
        double priorRate,
        double priorEvents,
        double groupEvents,
        double classEvents,
        double labelEvents) {

    /// Chosen by order of magnitude; the laboratory shows what half and twice of each would change.
    public static final ImportanceConfig DEFAULT = new ImportanceConfig(64, 4, 0.1, 5, 50, 1000, 4000);

    public ImportanceConfig {
        requirePositive("halfLife", halfLife);
        requirePositive("ghosts", ghosts);
        requirePositive("priorRate", priorRate);
        requirePositive("priorEvents", priorEvents);
        requirePositive("groupEvents", groupEvents);
        requirePositive("classEvents", classEvents);
        requirePositive("labelEvents", labelEvents);
    }

    private static void requirePositive(String name, double value) {
        if (!(value > 0 && value < 1e9)) {
            throw new IllegalArgumentException(name + " is " + value + ", must be above 0 and below 1e9");
        }
    }
}

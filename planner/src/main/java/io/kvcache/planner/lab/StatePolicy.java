package io.kvcache.planner.lab;

import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/// Where a model's recurrent states are kept along a prompt.
///
/// @param name as users write it: [#FORMS]
/// @param cost whether a state takes room of its own
/// @param ends at the last full block of a prompt
/// @param branches where the blocks that were found end, when no state was found there
/// @param everyTokens also at each multiple of so many tokens, 1 for each block; 0 for none
public record StatePolicy(String name, StateCost cost, boolean ends, boolean branches, int everyTokens) {

    /// The names that [#named] takes.
    public static final String FORMS = "bound, block, free, or ends, branches and every:TOKENS joined by +";

    /// From the simplest to the bound of all.
    public static final List<String> DEFAULTS = List.of(
            "bound",
            "block",
            "every:2048",
            "ends",
            "ends+branches",
            "ends+every:8192",
            "ends+branches+every:8192",
            "free");

    private static final int MAX_TOKENS = 1 << 20;

    /// What a state takes.
    public enum StateCost {
        /// Nothing, and each block has one: the bound of all others.
        FREE,
        /// It is part of each block, and is evicted with it.
        PART_OF_BLOCK,
        /// It is evicted before its block, or with it.
        ITS_OWN
    }

    /// Returns the policy of a name; empty if it is none.
    public static Optional<StatePolicy> named(String name) {
        return switch (name) {
            case "free" -> Optional.of(new StatePolicy(name, StateCost.FREE, false, false, 0));
            case "bound" -> Optional.of(new StatePolicy(name, StateCost.PART_OF_BLOCK, false, false, 0));
            case "block" -> Optional.of(new StatePolicy(name, StateCost.ITS_OWN, false, false, 1));
            default -> joined(name);
        };
    }

    private static Optional<StatePolicy> joined(String name) {
        Set<String> parts = new HashSet<>();
        int everyTokens = 0;
        for (String part : name.split("\\+", -1)) {
            boolean every = part.matches("every:[1-9]\\d{0,6}");
            if (every) {
                everyTokens = Integer.parseInt(part.substring("every:".length()));
            }
            boolean known = every || part.equals("ends") || part.equals("branches");
            if (!known || !parts.add(every ? "every" : part) || everyTokens > MAX_TOKENS) {
                return Optional.empty();
            }
        }
        return Optional.of(new StatePolicy(
                name, StateCost.ITS_OWN, parts.contains("ends"), parts.contains("branches"), everyTokens));
    }

    /// Returns whether multiples of the tokens are ends of blocks.
    public boolean fits(int blockTokens) {
        return everyTokens <= 1 || everyTokens % blockTokens == 0;
    }

    /// Returns whether a state is kept behind a block.
    ///
    /// @param block of a prompt, from 0
    /// @param storedBlocks of the prompt
    /// @param foundBlocks leading blocks whose KV was found
    boolean keeps(int block, int storedBlocks, int foundBlocks, int blockTokens) {
        int everyBlocks = Math.max(1, everyTokens / blockTokens);
        return (ends && block == storedBlocks - 1)
                || (branches && block == foundBlocks - 1)
                || (everyTokens > 0 && (block + 1) % everyBlocks == 0);
    }
}

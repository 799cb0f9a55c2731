package io.kvcache.core.policy;

import java.util.Arrays;
import java.util.Optional;
import java.util.stream.Collectors;

/// The eviction policies there are, by the name that configuration and command lines use.
public enum PolicyKind {
    /// See [LeafLru].
    LRU("lru", "LRU", "vLLM, SOSP 2023; SGLang, NeurIPS 2024"),
    /// See [LeafFifo].
    FIFO("fifo", "FIFO", "textbook"),
    /// See [LfuDynamicAging].
    LFU_DA("lfu-da", "LFU with dynamic ageing", "Arlitt et al., 2000"),
    /// See [GdsfDepthCost].
    GDSF("gdsf", "GDSF, cost = prefill work at depth", "Cherkasova, HP Labs 1998"),
    /// See [Slru].
    SLRU("slru", "Segmented LRU", "Karedla et al., IEEE Computer 1994"),
    /// See [S3Fifo].
    S3_FIFO("s3-fifo", "S3-FIFO", "Yang et al., SOSP 2023"),
    /// See [Sieve].
    SIEVE("sieve", "SIEVE", "Zhang et al., NSDI 2024"),
    /// See [ImportancePolicy].
    IMPORTANCE("importance", "Importance, learned", "our own, after LHD, NSDI 2018");

    private final String commandName;
    private final String title;
    private final String paper;

    PolicyKind(String commandName, String title, String paper) {
        this.commandName = commandName;
        this.title = title;
        this.paper = paper;
    }

    /// The kind with this command-line name, if any.
    public static Optional<PolicyKind> fromName(String name) {
        return Arrays.stream(values())
                .filter(kind -> kind.commandName.equals(name))
                .findFirst();
    }

    /// All command-line names, for messages: `lru, fifo, …`.
    public static String names() {
        return Arrays.stream(values()).map(PolicyKind::commandName).collect(Collectors.joining(", "));
    }

    /// Name in configuration and on command lines.
    public String commandName() {
        return commandName;
    }

    /// Name for people.
    public String title() {
        return title;
    }

    /// Where the algorithm was published.
    public String paper() {
        return paper;
    }

    /// Whether instances are to hear of each block that a request will use which is known to come.
    public boolean usesAnnouncements() {
        return this == IMPORTANCE;
    }

    /// Whether instances make use of what callers say of blocks: [EvictionPolicy#label] and
    /// [EvictionPolicy#setWeight].
    public boolean usesLabels() {
        return this == IMPORTANCE;
    }

    /// Queues that an instance takes of those that one state can number ([PolicyState#remainingQueues]).
    public int queueCount() {
        return switch (this) {
            case S3_FIFO, SIEVE -> 0;
            case LRU, FIFO, LFU_DA, GDSF, IMPORTANCE -> 1;
            case SLRU -> 2;
        };
    }

    /// An instance for one slot class that keeps its notes in a state shared with the others.
    public EvictionPolicy create(RecordView records, PolicyState state) {
        return switch (this) {
            case LRU -> new LeafLru(records, state);
            case FIFO -> new LeafFifo(records, state);
            case LFU_DA -> new LfuDynamicAging(records, state);
            case GDSF -> new GdsfDepthCost(records, state);
            case SLRU -> new Slru(records, state);
            case S3_FIFO -> new S3Fifo(records, state);
            case SIEVE -> new Sieve(records, state);
            case IMPORTANCE -> new ImportancePolicy(records, state);
        };
    }

    /// The only instance over these records.
    public EvictionPolicy create(RecordView records) {
        return create(records, new PolicyState(records.capacity()));
    }
}

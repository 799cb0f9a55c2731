package io.kvcache.core.policy;

/// The eviction policies that ship with the store. Others come as services: see [EvictionPolicyFactory].
public enum PolicyKind implements EvictionPolicyFactory {
    /// See [LeafLru].
    LRU("lru", "LRU", "vLLM, SOSP 2023; SGLang, NeurIPS 2024") {
        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return new LeafLru(records, state);
        }
    },
    /// See [ImportancePolicy].
    IMPORTANCE("importance", "Importance, learned", "our own, after LHD, NSDI 2018") {
        @Override
        public EvictionPolicy create(RecordView records, PolicyState state) {
            return new ImportancePolicy(records, state);
        }

        @Override
        public boolean usesAnnouncements() {
            return true;
        }

        @Override
        public boolean usesLabels() {
            return true;
        }
    };

    private final String commandName;
    private final String title;
    private final String source;

    PolicyKind(String commandName, String title, String source) {
        this.commandName = commandName;
        this.title = title;
        this.source = source;
    }

    @Override
    public String commandName() {
        return commandName;
    }

    @Override
    public String title() {
        return title;
    }

    @Override
    public String source() {
        return source;
    }
}

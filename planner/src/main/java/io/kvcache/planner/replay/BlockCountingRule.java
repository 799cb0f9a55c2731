package io.kvcache.planner.replay;

import io.kvcache.planner.trace.TraceRequest;

/// Selects the blocks of a request that count.
public enum BlockCountingRule {
    /// Every id is a block, the partial last one included, so that results compare with other studies.
    REFERENCE("reference") {
        @Override
        int storedBlocks(TraceRequest request, int blockTokens) {
            return request.hashIds().length;
        }

        @Override
        int lookupBlocks(TraceRequest request, int blockTokens) {
            return request.hashIds().length;
        }
    },
    /// The store's own rule: only full blocks are cached, and at most all tokens but one are looked up, since even
    /// a full hit has to compute the last token's logits.
    FULL_BLOCKS("full-blocks") {
        @Override
        int storedBlocks(TraceRequest request, int blockTokens) {
            return request.inputTokens() / blockTokens;
        }

        @Override
        int lookupBlocks(TraceRequest request, int blockTokens) {
            return (request.inputTokens() - 1) / blockTokens;
        }
    };

    private final String commandName;

    BlockCountingRule(String commandName) {
        this.commandName = commandName;
    }

    /// Name on command lines and in output.
    public String commandName() {
        return commandName;
    }

    /// Leading blocks of a request that are put into the cache.
    abstract int storedBlocks(TraceRequest request, int blockTokens);

    /// Leading blocks of a request that can be hits: its block accesses.
    abstract int lookupBlocks(TraceRequest request, int blockTokens);
}

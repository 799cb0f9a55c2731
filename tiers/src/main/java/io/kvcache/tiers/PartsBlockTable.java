package io.kvcache.tiers;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PartGroup;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.time.Timeouts;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/// The blocks of a match with the windows and states that it needs. They are of use together alone: until all are
/// here no block is ready, and when one does not come, none does.
final class PartsBlockTable extends ForwardingBlockTable {

    private final Namespace namespace;
    private final int end;
    private final List<EntryTable> entries;
    private final Clock clock;
    /// Once all is here it stays so: each segment asks.
    private volatile boolean isComplete;

    /// @param blocks up to the end of the match
    /// @param end of the match, behind `blocks.firstBlock()`
    /// @param entries that it needs, in the order of the namespace's groups
    PartsBlockTable(Clock clock, Namespace namespace, BlockTable blocks, int end, List<EntryTable> entries) {
        super(blocks);
        this.clock = clock;
        this.namespace = namespace;
        this.end = end;
        this.entries = entries;
    }

    @Override
    public BlockTable part(int part) {
        PartGroup group = namespace.groupOf(part);
        return group == null ? this : entries.get(namespace.groups().indexOf(group));
    }

    @Override
    public int endBlock() {
        boolean comes = delegate().endBlock() >= end && entries.stream().allMatch(EntryTable::comes);
        return comes ? end : firstBlock();
    }

    @Override
    public int readyEnd() {
        if (!isComplete) {
            isComplete = delegate().readyEnd() >= end && entries.stream().allMatch(EntryTable::isHere);
        }
        return isComplete ? end : firstBlock();
    }

    @Override
    public int await(int wanted, Duration timeout) {
        Deadline deadline = Deadline.after(clock, Timeouts.toNanos(timeout));
        if (wanted > firstBlock()) {
            int _ = delegate().await(end, timeout);
            for (EntryTable each : entries) {
                int _ = each.await(each.wantedEnd(), Duration.ofNanos(Math.max(0, deadline.remainingNanos())));
            }
        }
        return readyEnd();
    }

    @Override
    public CompletionStage<Integer> onReady(int wanted, Executor executor) {
        CompletionStage<?> all = delegate().onReady(end, Runnable::run);
        for (EntryTable each : entries) {
            all = all.thenCombine(each.onReady(each.wantedEnd(), Runnable::run), (_, _) -> 0);
        }
        return all.thenApplyAsync(_ -> readyEnd(), executor);
    }

    @Override
    public int readyLayers() {
        return readyEnd() >= endBlock() ? ALL_LAYERS : 0;
    }

    @Override
    public int awaitLayers(int layers, Duration timeout) {
        int _ = await(end, timeout);
        return readyLayers();
    }

    @Override
    public CompletionStage<Integer> onLayers(int layers, Executor executor) {
        return onReady(end, executor).thenApply(_ -> readyLayers());
    }

    @Override
    public MemorySegment readySegment(int index) {
        return index < readyEnd() ? segment(index) : MemorySegment.NULL;
    }

    @Override
    public MemorySegment segment(int index) {
        requireReady(index);
        return super.segment(index);
    }

    @Override
    public int checksum(int index) {
        requireReady(index);
        return super.checksum(index);
    }

    @Override
    public long handle(int index) {
        requireReady(index);
        return super.handle(index);
    }

    private void requireReady(int index) {
        if (index >= readyEnd()) {
            throw new IndexOutOfBoundsException("block " + index + " of a table of which blocks " + firstBlock()
                    + " to " + readyEnd() + " (exclusive) are ready");
        }
    }

    @Override
    public boolean isValid() {
        return super.isValid() && entries.stream().allMatch(EntryTable::isValid);
    }

    @Override
    public void close() {
        try {
            super.close();
        } finally {
            entries.forEach(EntryTable::close);
        }
    }

    /// Entries of a window or state, one table each.
    ///
    /// @param first number of the first
    record EntryTable(Clock clock, int first, List<BlockTable> tables) implements BlockTable {

        /// Entry after the last one that is needed.
        int wantedEnd() {
            return first + tables.size();
        }

        boolean comes() {
            return endBlock() == wantedEnd();
        }

        boolean isHere() {
            return readyEnd() == wantedEnd();
        }

        @Override
        public int firstBlock() {
            return first;
        }

        @Override
        public int endBlock() {
            int end = 0;
            while (end < tables.size() && tables.get(end).endBlock() == 1) {
                end++;
            }
            return first + end;
        }

        @Override
        public int readyEnd() {
            int end = 0;
            while (end < tables.size() && tables.get(end).readyEnd() == 1) {
                end++;
            }
            return first + end;
        }

        @Override
        public int await(int end, Duration timeout) {
            Deadline deadline = Deadline.after(clock, Timeouts.toNanos(timeout));
            for (BlockTable table : tables.subList(0, Math.clamp((long) end - first, 0, tables.size()))) {
                int _ = table.await(1, Duration.ofNanos(Math.max(0, deadline.remainingNanos())));
            }
            return readyEnd();
        }

        @Override
        public CompletionStage<Integer> onReady(int end, Executor executor) {
            CompletionStage<Integer> all = CompletableFuture.completedStage(0);
            for (BlockTable table : tables.subList(0, Math.clamp((long) end - first, 0, tables.size()))) {
                all = all.thenCombine(table.onReady(1, Runnable::run), Integer::sum);
            }
            return all.thenApplyAsync(_ -> readyEnd(), executor);
        }

        @Override
        public MemorySegment segment(int index) {
            return table(index).segment(0);
        }

        @Override
        public int checksum(int index) {
            return table(index).checksum(0);
        }

        @Override
        public long handle(int index) {
            return table(index).handle(0);
        }

        private BlockTable table(int index) {
            if (index < first || index >= wantedEnd()) {
                throw new IndexOutOfBoundsException(
                        "entry " + index + " of a table of entries " + first + " to " + wantedEnd() + " (exclusive)");
            }
            return tables.get(index - first);
        }

        @Override
        public boolean isValid() {
            return tables.stream().allMatch(BlockTable::isValid);
        }

        @Override
        public int blocksToRecompute() {
            return 0;
        }

        @Override
        public void close() {
            tables.forEach(BlockTable::close);
        }
    }
}

package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.time.Timeouts;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/// The tables of a chain's groups as one, in chain order. It ends where the first of them ends before its group does.
///
/// **Threads.** Any.
final class ClusterBlockTable implements BlockTable {

    private final int firstBlock;
    private final List<GroupTable> groups;
    private final PeerClock clock;
    private volatile boolean closed;

    /// The table of a group.
    ///
    /// @param first the group's first block in the whole chain
    /// @param end block of the whole chain after the last one that is wanted
    /// @param table counts its blocks from the group's first block on
    record GroupTable(int first, int end, BlockTable table) {

        int readyEnd() {
            return first + table.readyEnd();
        }

        int endBlock() {
            return first + table.endBlock();
        }

        boolean isComplete() {
            return endBlock() == end;
        }
    }

    /// @param groups at least one, adjacent; this table's from now on. Those behind the first one that lacks a block
    ///     are closed here
    ClusterBlockTable(int firstBlock, List<GroupTable> groups, PeerClock clock) {
        this.firstBlock = firstBlock;
        this.clock = clock;
        List<GroupTable> kept = new ArrayList<>();
        boolean whole = true;
        for (GroupTable group : groups) {
            if (whole) {
                kept.add(group);
                whole = group.isComplete();
            } else {
                group.table.close();
            }
        }
        this.groups = List.copyOf(kept);
    }

    @Override
    public int firstBlock() {
        return firstBlock;
    }

    /// May decrease when blocks that were expected do not come.
    @Override
    public int endBlock() {
        int end = firstBlock;
        for (GroupTable group : groups) {
            end = group.endBlock();
            if (end < group.end) {
                break;
            }
        }
        return end;
    }

    @Override
    public int readyEnd() {
        int ready = firstBlock;
        for (GroupTable group : groups) {
            ready = group.readyEnd();
            if (ready < group.end) {
                break;
            }
        }
        return ready;
    }

    @Override
    public int await(int end, Duration timeout) {
        long until = clock.deadlineAfter(Timeouts.toNanos(timeout));
        for (GroupTable group : groups) {
            int wanted = Math.min(end, group.end) - group.first;
            long left = Math.max(0, until - clock.nanos());
            if (wanted <= 0 || group.table.await(wanted, Duration.ofNanos(left)) < wanted) {
                break;
            }
        }
        return readyEnd();
    }

    @Override
    public CompletionStage<Integer> onReady(int end, Executor executor) {
        return onReady(0, end, executor);
    }

    /// Waits for one group after the other: blocks are ready in chain order.
    private CompletionStage<Integer> onReady(int index, int end, Executor executor) {
        GroupTable group = groups.get(index);
        int wanted = Math.min(end, group.end) - group.first;
        boolean last = index == groups.size() - 1 || end <= group.end;
        if (last) {
            return group.table.onReady(wanted, executor).thenApply(ready -> group.first + ready);
        }
        return group.table
                .onReady(wanted, executor)
                .thenCompose(ready -> ready < wanted
                        ? CompletableFuture.completedStage(group.first + ready)
                        : onReady(index + 1, end, executor));
    }

    @Override
    public MemorySegment segment(int index) {
        GroupTable group = groupOf(index);
        return group.table.segment(index - group.first);
    }

    @Override
    public int checksum(int index) {
        GroupTable group = groupOf(index);
        return group.table.checksum(index - group.first);
    }

    @Override
    public long handle(int index) {
        GroupTable group = groupOf(index);
        return group.table.handle(index - group.first);
    }

    private GroupTable groupOf(int index) {
        if (closed) {
            throw new IllegalStateException("the table is closed");
        }
        int ready = readyEnd();
        for (GroupTable group : groups) {
            if (index < group.end) {
                if (index < firstBlock || index >= ready) {
                    break;
                }
                return group;
            }
        }
        throw new IndexOutOfBoundsException("block " + index + " of a table whose blocks " + firstBlock + " to " + ready
                + " (exclusive) are ready");
    }

    @Override
    public boolean isValid() {
        return groups.stream().allMatch(group -> group.table.isValid());
    }

    @Override
    public int blocksToRecompute() {
        return groups.getLast().table.blocksToRecompute();
    }

    @Override
    public void close() {
        closed = true;
        @Nullable RuntimeException failed = null;
        for (GroupTable group : groups) {
            try {
                group.table.close();
            } catch (RuntimeException inUse) {
                failed = inUse;
            }
        }
        if (failed != null) {
            throw failed;
        }
    }
}

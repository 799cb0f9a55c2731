package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingBlockTable;
import io.kvcache.core.time.Timeouts;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/// Blocks of a [SimSharedCache] as they come: each at a moment of its own, perhaps not all, and seldom a wrong
/// one.
final class SimSharedTable extends ForwardingBlockTable {

    private final TurnScheduler turnScheduler;
    private final NearSimulation play;
    private final long[] arrives;
    private final int wrong;
    private final int comes;
    private boolean told;

    SimSharedTable(BlockTable table, NearSimulation play, SplittableRandom random) {
        super(table);
        this.play = play;
        turnScheduler = play.scheduler();
        int ready = table.readyBlocks();
        boolean fair = play.isFaultFree() || ready == 0;
        comes = fair || random.nextInt(6) > 0 ? ready : random.nextInt(ready);
        wrong = !fair && random.nextInt(12) == 0 ? random.nextInt(ready) : -1;
        arrives = new long[comes];
        long at = turnScheduler.now();
        for (int i = 0; i < comes; i++) {
            at += random.nextLong(play.isFaultFree() || random.nextInt(8) > 0 ? 100_000 : 20_000_000);
            arrives[i] = at;
        }
    }

    @Override
    public int endBlock() {
        return firstBlock() + (told ? comes : delegate().readyBlocks());
    }

    @Override
    public int readyEnd() {
        return firstBlock() + arrivedBlocks();
    }

    private int arrivedBlocks() {
        int ready = 0;
        while (ready < comes && arrives[ready] <= turnScheduler.now()) {
            ready++;
        }
        return ready;
    }

    @Override
    public int await(int end, Duration timeout) {
        int blocks = end - firstBlock();
        int wanted = Math.min(blocks, comes);
        if (wanted > 0 && arrivedBlocks() < wanted) {
            turnScheduler.sleep(Math.min(Timeouts.toNanos(timeout), arrives[wanted - 1] - turnScheduler.now()));
        }
        if (blocks > comes && comes < delegate().readyBlocks() && !told) {
            told = true;
        }
        return readyEnd();
    }

    @Override
    public CompletionStage<Integer> onReady(int blocks, Executor executor) {
        return CompletableFuture.failedFuture(new UnsupportedOperationException("nobody asks so"));
    }

    @Override
    public MemorySegment segment(int index) {
        if (index >= readyEnd()) {
            throw new IndexOutOfBoundsException("block " + index + " has not come");
        }
        MemorySegment right = delegate().segment(index);
        if (index - firstBlock() != wrong) {
            return right;
        }
        play.tampered();
        MemorySegment other = MemorySegment.ofArray(right.toArray(ValueLayout.JAVA_BYTE));
        other.set(ValueLayout.JAVA_BYTE, index % other.byteSize(), (byte)
                (other.get(ValueLayout.JAVA_BYTE, index % other.byteSize()) ^ 1));
        return other;
    }

    @Override
    public void copyTo(int index, MemorySegment target) {
        MemorySegment block = segment(index);
        MemorySegment.copy(block, 0, target, 0, block.byteSize());
    }
}

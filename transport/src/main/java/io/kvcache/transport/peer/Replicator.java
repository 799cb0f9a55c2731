package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Gives peers what is new in the store, beside the thread that stores it. What waits are names of blocks and not
/// their bytes. There is a limit to it; what is beyond is not given, nor what a peer does not take: it is a miss
/// there, and given when it is stored the next time.
///
/// **Threads.** Any may offer; one of its own gives.
final class Replicator implements AutoCloseable {

    private final PeerStore tier;
    private final int maxQueued;
    private final Deque<BlockChain> queue = new ArrayDeque<>();
    private final LongAdder dropped = new LongAdder();
    private final PeerClock clock;
    private final long never;
    private boolean replicating;
    private long rounds;
    private boolean closed;
    private boolean ended;

    Replicator(PeerStore tier, int maxQueued, PeerClock clock) {
        this.tier = tier;
        this.maxQueued = maxQueued;
        this.clock = clock;
        never = clock.deadlineAfter(Long.MAX_VALUE);
    }

    /// Begins to give, on a thread of this executor's that is busy until the giver is closed.
    void start(Executor executor) {
        executor.execute(this::run);
    }

    /// The last block of a chain is new. Of a chain that grows block by block only the longest waits.
    synchronized void enqueue(BlockChain chain) {
        BlockChain last = queue.peekLast();
        if (last != null && extendsByOneBlock(last, chain)) {
            queue.removeLast();
        } else if (queue.size() == maxQueued) {
            dropped.increment();
            return;
        }
        queue.addLast(chain);
        clock.wake(this);
    }

    /// Returns whether a chain extends another by one block, in the same group.
    private static boolean extendsByOneBlock(BlockChain shorter, BlockChain longer) {
        int at = shorter.length() - 1;
        return longer.length() == shorter.length() + 1
                && (at + 1) % BlockGroup.BLOCKS != 0
                && longer.namespace().equals(shorter.namespace())
                && longer.keyHi(at) == shorter.keyHi(at)
                && longer.keyLo(at) == shorter.keyLo(at);
    }

    private void run() {
        try {
            for (BlockChain next = next(); next != null; next = next()) {
                replicate(next);
            }
        } finally {
            end();
        }
    }

    private void replicate(BlockChain chain) {
        try {
            if (!tier.replicate(chain)) {
                dropped.increment();
            }
        } catch (RuntimeException failed) {
            dropped.increment();
            System.getLogger(Replicator.class.getName())
                    .log(System.Logger.Level.DEBUG, "a group was not given to its peer", failed);
        }
    }

    private synchronized void end() {
        ended = true;
        clock.wake(this);
    }

    private synchronized @Nullable BlockChain next() {
        replicating = false;
        rounds++;
        clock.wake(this);
        try {
            while (queue.isEmpty() && !closed) {
                clock.await(this, never);
            }
        } catch (InterruptedException stopped) {
            closed = true;
        }
        replicating = !closed;
        return closed ? null : queue.pollFirst();
    }

    /// Waits until nothing is on its way to a peer and nothing waits.
    synchronized void awaitIdle() throws InterruptedException {
        while ((replicating || !queue.isEmpty()) && !closed) {
            clock.await(this, never);
        }
    }

    /// Waits until what is on its way to a peer now is there, or is not.
    synchronized void awaitInFlight() throws InterruptedException {
        long present = rounds;
        while (replicating && rounds == present && !closed) {
            clock.await(this, never);
        }
    }

    /// Blocks, or runs of them, that were not given.
    long droppedCount() {
        return dropped.sum();
    }

    /// Waits until what is on its way to a peer is there, or is not.
    @Override
    public synchronized void close() {
        closed = true;
        clock.wake(this);
        try {
            while (!ended) {
                clock.await(this, never);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}

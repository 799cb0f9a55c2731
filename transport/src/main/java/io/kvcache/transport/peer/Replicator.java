package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.cluster.BlockGroups;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Replicates new blocks of the store to peers, in the background. The queue holds keys of blocks, not their
/// bytes, and has a limit. Blocks beyond the limit, or that a peer rejects, are misses there until they are stored
/// the next time.
///
/// **Threads.** Any may enqueue; one of its own replicates.
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

    /// Begins to replicate, on a thread of this executor, which is busy until the replicator is closed.
    void start(Executor executor) {
        executor.execute(this::run);
    }

    /// Queues the last block of a chain. Of a chain that grows block by block, only the longest stays queued.
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
                && BlockGroups.of(longer.blockTokens()).start(at + 1) <= at
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

    /// Waits until the queue is empty and no block is on its way to a peer.
    synchronized void awaitIdle() throws InterruptedException {
        while ((replicating || !queue.isEmpty()) && !closed) {
            clock.await(this, never);
        }
    }

    /// Waits until the blocks that are on their way to a peer now have arrived or failed.
    synchronized void awaitInFlight() throws InterruptedException {
        long present = rounds;
        while (replicating && rounds == present && !closed) {
            clock.await(this, never);
        }
    }

    /// Returns the number of blocks, or runs of them, that were not replicated.
    long droppedCount() {
        return dropped.sum();
    }

    /// Waits until the blocks that are on their way to a peer have arrived or failed.
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

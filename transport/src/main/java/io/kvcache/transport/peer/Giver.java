package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Gives peers what is new in the store, beside whoever stores it. What waits are names of blocks and not
/// their bytes. There is a limit to it; what is beyond is not given, nor what a peer does not take: it is a
/// miss there, and given by whoever stores it next.
///
/// **Threads.** Any may offer; one of its own gives.
final class Giver implements AutoCloseable {

    private final RemoteTier tier;
    private final int most;
    private final Deque<BlockChain> waiting = new ArrayDeque<>();
    private final LongAdder left = new LongAdder();
    private final PeerClock clock;
    private final long never;
    private boolean giving;
    private long turn;
    private boolean closed;
    private boolean ended;

    Giver(RemoteTier tier, int most, PeerClock clock) {
        this.tier = tier;
        this.most = most;
        this.clock = clock;
        never = clock.after(Long.MAX_VALUE);
    }

    /// Begins to give, on a thread of this executor's that is busy until the giver is closed.
    void start(Executor executor) {
        executor.execute(this::run);
    }

    /// The last block of a chain is new. Of a chain that grows block by block only the longest waits.
    synchronized void offer(BlockChain chain) {
        BlockChain last = waiting.peekLast();
        if (last != null && continues(last, chain)) {
            waiting.removeLast();
        } else if (waiting.size() == most) {
            left.increment();
            return;
        }
        waiting.addLast(chain);
        clock.wake(this);
    }

    /// Whether a chain has one block more, in the same group.
    private static boolean continues(BlockChain shorter, BlockChain longer) {
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
                give(next);
            }
        } finally {
            end();
        }
    }

    private void give(BlockChain chain) {
        try {
            if (!tier.give(chain)) {
                left.increment();
            }
        } catch (RuntimeException failed) {
            left.increment();
            System.getLogger(Giver.class.getName())
                    .log(System.Logger.Level.DEBUG, "a group was not given to its peer", failed);
        }
    }

    private synchronized void end() {
        ended = true;
        clock.wake(this);
    }

    private synchronized @Nullable BlockChain next() {
        giving = false;
        turn++;
        clock.wake(this);
        try {
            while (waiting.isEmpty() && !closed) {
                clock.await(this, never);
            }
        } catch (InterruptedException stopped) {
            closed = true;
        }
        giving = !closed;
        return closed ? null : waiting.pollFirst();
    }

    /// Waits until nothing is on its way to a peer and nothing waits.
    synchronized void awaitAll() throws InterruptedException {
        while ((giving || !waiting.isEmpty()) && !closed) {
            clock.await(this, never);
        }
    }

    /// Waits until what is on its way to a peer now is there, or is not.
    synchronized void awaitPresent() throws InterruptedException {
        long present = turn;
        while (giving && turn == present && !closed) {
            clock.await(this, never);
        }
    }

    /// Blocks, or runs of them, that were not given.
    long leftCount() {
        return left.sum();
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

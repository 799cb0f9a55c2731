package io.kvcache.engines.generator;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/// Puts the full blocks of finished sequences into the store, one sequence after the other, on a thread
/// of its own: nobody waits for it.
///
/// **Ownership.** A sequence that is offered is closed here, stored or not.
///
/// **Threads.** Any.
final class Storing implements AutoCloseable {

    private static final Logger LOG = System.getLogger(Storing.class.getName());

    private final KvCache cache;
    private final Counters counters;
    private final ThreadPoolExecutor thread;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition idle = lock.newCondition();

    /// Sequences that were taken and are not done.
    private int underway;

    Storing(KvCache cache, Counters counters, int mostWaiting) {
        this.cache = cache;
        this.counters = counters;
        thread = new ThreadPoolExecutor(
                1,
                1,
                0,
                TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(mostWaiting),
                Thread.ofPlatform().name("kvcache-generator-store").daemon().factory());
    }

    /// Takes a chain's blocks out of a sequence and stores those that are new.
    void offer(EngineSequence sequence, BlockChain chain) {
        count(1);
        try {
            thread.execute(() -> {
                try (sequence) {
                    store(sequence, chain);
                } catch (RuntimeException failed) {
                    counters.failedStores.increment();
                    LOG.log(Level.WARNING, "could not store the blocks of a sequence of " + chain.namespace(), failed);
                } finally {
                    count(-1);
                }
            });
        } catch (RejectedExecutionException full) {
            count(-1);
            counters.skippedStores.increment();
            sequence.close();
        }
    }

    /// What the store has lost since it was asked is given to it again: the sequence has all of it.
    private void store(EngineSequence sequence, BlockChain chain) {
        long start = System.nanoTime();
        int from = cache.match(chain).blocks();
        if (from < chain.length()) {
            EngineBlocks blocks = sequence.blocks(chain.length());
            boolean going = true;
            for (int block = from; going && block < chain.length(); block++) {
                going = put(blocks, chain, block);
            }
        }
        counters.storeNanos.add(System.nanoTime() - start);
    }

    private boolean put(EngineBlocks blocks, BlockChain chain, int block) {
        try (BlockWriter writer = cache.put(chain, block, 0, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                blocks.copyOut(block, writer.segment());
                boolean kept = writer.seal() != SealOutcome.DROPPED;
                (kept ? counters.storedBlocks : counters.refusedBlocks).increment();
                return kept;
            }
            if (!writer.outcome().continues()) {
                counters.refusedBlocks.increment();
                return false;
            }
            return true;
        }
    }

    private void count(int change) {
        lock.lock();
        try {
            underway += change;
            if (underway == 0) {
                idle.signalAll();
            }
        } finally {
            lock.unlock();
        }
    }

    /// Waits until all that was offered is done.
    ///
    /// @return whether it is
    boolean await(long timeoutNanos) throws InterruptedException {
        long left = timeoutNanos;
        lock.lock();
        try {
            while (underway > 0) {
                if (left <= 0) {
                    return false;
                }
                left = idle.awaitNanos(left);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /// Ends after what was offered.
    @Override
    public void close() {
        thread.shutdown();
    }
}

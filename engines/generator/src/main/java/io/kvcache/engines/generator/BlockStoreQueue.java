package io.kvcache.engines.generator;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.engines.generator.EngineSequence.SequenceBlockCopier;
import io.kvcache.engines.generator.GeneratorStats.GeneratorCounters;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/// Puts the full blocks of finished sequences into the store, one sequence after the other, on a thread
/// of its own. Only a request that continues such a sequence waits until the blocks that both share are
/// in the store: reading them back takes less than computing them. What is stored gets a label, from which an
/// importance policy learns how soon it is used again.
///
/// **Ownership.** A sequence that is offered is closed here, stored or not.
///
/// **Threads.** Any.
final class BlockStoreQueue implements AutoCloseable {

    private static final Logger LOG = System.getLogger(BlockStoreQueue.class.getName());

    private final KvCache cache;
    private final GeneratorCounters counters;
    private final ThreadPoolExecutor executor;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition progress = lock.newCondition();

    /// Sequences that were taken and are not done; under the lock.
    private final List<QueuedSequence> queued = new ArrayList<>();

    private static final class QueuedSequence {

        private final BlockChain chain;

        /// Leading blocks that the store is known to have; under the lock.
        private int stored;

        QueuedSequence(BlockChain chain, int stored) {
            this.chain = chain;
            this.stored = stored;
        }

        /// Returns whether it will put blocks that a prompt wants.
        boolean willStoreMoreOf(BlockChain prompt) {
            int most = Math.min(chain.length(), prompt.length());
            return stored < most && hasSameBlock(prompt, stored);
        }

        /// A key stands for all blocks before it too.
        private boolean hasSameBlock(BlockChain prompt, int index) {
            return chain.keyHi(index) == prompt.keyHi(index) && chain.keyLo(index) == prompt.keyLo(index);
        }
    }

    BlockStoreQueue(KvCache cache, GeneratorCounters counters, int maxWaiting) {
        this.cache = cache;
        this.counters = counters;
        executor = new ThreadPoolExecutor(
                1,
                1,
                0,
                TimeUnit.SECONDS,
                new ArrayBlockingQueue<>(maxWaiting),
                Thread.ofPlatform().name("kvcache-generator-store").daemon().factory());
    }

    /// Takes a chain's blocks out of a sequence and stores those that are new.
    ///
    /// @param stored leading blocks that the sequence has from the store
    /// @param kind of request that the blocks are labelled with
    void offer(EngineSequence sequence, BlockChain chain, int stored, RequestKind kind) {
        QueuedSequence queuedSequence = new QueuedSequence(chain, stored);
        begin(queuedSequence);
        try {
            executor.execute(() -> {
                try (sequence) {
                    store(sequence, queuedSequence);
                    label(chain, kind);
                } catch (RuntimeException failed) {
                    counters.failedStores.increment();
                    LOG.log(Level.WARNING, "could not store the blocks of a sequence of " + chain.namespace(), failed);
                } finally {
                    end(queuedSequence);
                }
            });
        } catch (RejectedExecutionException full) {
            end(queuedSequence);
            counters.skippedStores.increment();
            sequence.close();
        }
    }

    /// Puts blocks again that the store has lost since the look-up: the sequence has all of them.
    private void store(EngineSequence sequence, QueuedSequence queuedSequence) {
        long start = System.nanoTime();
        BlockChain chain = queuedSequence.chain;
        int from = cache.match(chain).blocks();
        advance(queuedSequence, from);
        if (from < chain.length()) {
            SequenceBlockCopier blocks = sequence.blocks(chain.length());
            boolean going = true;
            for (int block = from; going && block < chain.length(); block++) {
                going = put(blocks, chain, block);
                advance(queuedSequence, block + 1);
            }
        }
        counters.storeNanos.add(System.nanoTime() - start);
    }

    private void label(BlockChain chain, RequestKind kind) {
        if (chain.length() > 0) {
            cache.hint(new Hint.Label(chain, 0, RequestLabel.of(kind)));
        }
    }

    private boolean put(SequenceBlockCopier blocks, BlockChain chain, int block) {
        try (BlockWriter writer = cache.put(chain, block, 0, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                blocks.copyOut(block, writer.segment());
                boolean kept = writer.seal() != SealOutcome.DROPPED;
                (kept ? counters.storedBlocks : counters.refusedBlocks).increment();
                return kept;
            }
            if (!writer.outcome().allowsNextBlock()) {
                counters.refusedBlocks.increment();
                return false;
            }
            return true;
        }
    }

    private void begin(QueuedSequence queuedSequence) {
        lock.lock();
        try {
            queued.add(queuedSequence);
        } finally {
            lock.unlock();
        }
    }

    private void advance(QueuedSequence queuedSequence, int blocks) {
        lock.lock();
        try {
            queuedSequence.stored = blocks;
            progress.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void end(QueuedSequence queuedSequence) {
        lock.lock();
        try {
            queued.remove(queuedSequence);
            progress.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /// Waits until the store has all blocks of a prompt that sequences on their way will put, or time is up.
    ///
    /// @return what is left of the time, at least 0
    long awaitShared(BlockChain prompt, long timeoutNanos) {
        long left = timeoutNanos;
        lock.lock();
        try {
            while (left > 0 && queued.stream().anyMatch(queuedSequence -> queuedSequence.willStoreMoreOf(prompt))) {
                left = progress.awaitNanos(left);
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        } finally {
            lock.unlock();
        }
        return Math.max(left, 0);
    }

    /// Waits until all that was offered is done.
    ///
    /// @return whether it is
    boolean awaitIdle(long timeoutNanos) throws InterruptedException {
        long left = timeoutNanos;
        lock.lock();
        try {
            while (!queued.isEmpty()) {
                if (left <= 0) {
                    return false;
                }
                left = progress.awaitNanos(left);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /// Ends after what was offered.
    @Override
    public void close() {
        executor.shutdown();
    }
}

package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import java.util.Queue;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Chains that a store fetches although no caller waits for them, one after another.
///
/// **Threads.** Any. The executor's do the fetching, one of them at a time, so that callers who wait have the
/// others.
final class BackgroundFetches {

    /// What is more is not fetched.
    private static final int MAX_WAITING = 256;

    /// A group has 8k tokens at most: 1 GiB of blocks for the largest models.
    private static final long FETCH_NANOS = TimeUnit.SECONDS.toNanos(2);

    private final BlockFetcher fetcher;
    private final Executor executor;
    private final Queue<Missing> waiting = new ArrayBlockingQueue<>(MAX_WAITING);
    private final AtomicBoolean running = new AtomicBoolean();

    /// @param at first block that is missing
    private record Missing(BlockChain chain, int at) {}

    BackgroundFetches(BlockFetcher fetcher, Executor executor) {
        this.fetcher = fetcher;
        this.executor = executor;
    }

    /// Adds the blocks of a chain from an index on. Blocks behind that block's group are not fetched.
    ///
    /// @return false when too many wait
    boolean add(BlockChain chain, int at) {
        boolean added = waiting.offer(new Missing(chain, at));
        if (added && running.compareAndSet(false, true)) {
            try {
                executor.execute(this::run);
            } catch (RejectedExecutionException closing) {
                return false;
            }
        }
        return added;
    }

    private void run() {
        boolean more = true;
        while (more) {
            try {
                for (Missing next = next(); next != null; next = next()) {
                    var _ = fetcher.fetch(next.chain, next.at, FETCH_NANOS);
                }
            } finally {
                running.set(false);
            }
            more = !waiting.isEmpty() && running.compareAndSet(false, true);
        }
    }

    /// Returns null when nothing waits. An interrupt ends all: the store is being closed.
    private @Nullable Missing next() {
        if (Thread.currentThread().isInterrupted()) {
            waiting.clear();
        }
        return waiting.poll();
    }
}

package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.ForwardingKvCache;
import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.BlockChain;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/// A cache that answers when a test lets it: each request for blocks waits for its turn, after the answer is
/// clear and before the caller has it.
///
/// **Threads.** Any.
final class GatedKvCache extends ForwardingKvCache {

    private final Semaphore asked = new Semaphore(0);
    private final CountDownLatch open = new CountDownLatch(1);
    private volatile int requests;

    GatedKvCache(LocalKvCache store) {
        super(store);
    }

    /// Waits until one more request has come.
    void awaitRequest() throws InterruptedException {
        if (!asked.tryAcquire(60, TimeUnit.SECONDS)) {
            throw new AssertionError("no request comes");
        }
    }

    /// From now on it answers at once.
    void answer() {
        open.countDown();
    }

    int requests() {
        return requests;
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        BlockTable table = super.acquire(chain, from, KvCache.NO_WAIT);
        synchronized (this) {
            requests++;
        }
        asked.release();
        try {
            open.await();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        return table;
    }
}

package io.kvcache.transport.peer;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Hint;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutSummary;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;

/// A peer that answers when a test lets it: each question about blocks waits for its turn, after the answer is
/// clear and before anybody has it.
///
/// **Threads.** Any.
final class GatedPeerCache implements PeerCache {

    private final KvCache store;
    private final Semaphore asked = new Semaphore(0);
    private final CountDownLatch open = new CountDownLatch(1);
    private volatile int questions;

    /// @param store what it has
    GatedPeerCache(KvCache store) {
        this.store = store;
    }

    /// Waits until one more question has come.
    void awaitQuestion() throws InterruptedException {
        if (!asked.tryAcquire(60, TimeUnit.SECONDS)) {
            throw new AssertionError("nobody asks");
        }
    }

    /// From now on it answers at once.
    void answer() {
        open.countDown();
    }

    int questions() {
        return questions;
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, long timeoutNanos) {
        BlockTable table = store.acquire(chain, from, KvCache.NO_WAIT);
        synchronized (this) {
            questions++;
        }
        asked.release();
        try {
            open.await();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        return table;
    }

    @Override
    public void register(Namespace namespace) {
        store.register(namespace);
    }

    @Override
    public int match(BlockChain chain, long timeoutNanos) {
        return store.match(chain).blocks();
    }

    @Override
    public void forget(BlockChain chain) {
        store.hint(new Hint.Forget(chain, 0));
    }

    @Override
    public PutSummary putAll(BlockChain chain, List<MemorySegment> blocks) {
        return store.putAll(chain, 0, blocks, KvCache.NO_WAIT);
    }

    @Override
    public void drop(BlockChain chain, int from) {
        store.drop(chain, from);
    }

    @Override
    public void drop(Namespace namespace) {
        store.drop(namespace);
    }

    @Override
    public boolean isConnected() {
        return true;
    }

    @Override
    public long lifeSigns() {
        return 0;
    }

    @Override
    public void requestLifeSign() {}

    @Override
    public long failureCount() {
        return 0;
    }

    @Override
    public void close() {
        // The store is the test's.
    }
}

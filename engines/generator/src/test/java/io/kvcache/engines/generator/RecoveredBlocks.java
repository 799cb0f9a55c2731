package io.kvcache.engines.generator;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.BlockChain;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// What a store that was opened has found on its disk so far, which it does beside its work.
public final class RecoveredBlocks {

    private RecoveredBlocks() {}

    /// Waits until the store knows so many blocks.
    public static void await(KvCache cache, BlockChain chain, int blocks) {
        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
        while (cache.match(chain).blocks() < blocks) {
            if (System.nanoTime() > end) {
                throw new AssertionError(cache.match(chain) + " after a minute, not " + blocks + " blocks");
            }
            LockSupport.parkNanos(500_000);
        }
    }
}

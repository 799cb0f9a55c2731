package io.kvcache.transport.peer;

import io.kvcache.core.contract.CacheSetup;
import io.kvcache.core.contract.CacheUnderTest;
import io.kvcache.core.contract.ConcurrencyContract;
import io.kvcache.core.contract.KvCacheContract;
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;

/// A cache over three servers keeps the contract of every `KvCache` about objects and threads. That of blocks holds
/// within a group; [ClusteredKvCache] names what differs between groups.
@Tag(KvCacheContract.CARRIER)
final class ClusteredKvCacheContractTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final long LOOK_NANOS = TimeUnit.MICROSECONDS.toNanos(200);

    private static CacheUnderTest open(CacheSetup setup) {
        try {
            TestCluster cluster = new TestCluster();
            for (int i = 0; i < 3; i++) {
                cluster.add(TieredKvCache.builder()
                        .hostBytes(setup.hostBytes())
                        .eventCapacity(setup.eventCapacity())
                        .checkSegments(true)
                        .failOnLeak(true)
                        .prefaultInBackground(false)
                        .closeWait(Duration.ofSeconds(10))
                        .build());
            }
            cluster.show(cluster.servers());
            ClusteredKvCache cache = ClusteredKvCache.connect(
                    cluster.addresses(),
                    address -> RemoteKvCache.builder(address)
                            .memoryBytes(Math.max(256L << 20, 3 * setup.hostBytes()))
                            .checked(true)
                            .strict(setup.strict())
                            .requestTimeout(PATIENCE)
                            .connect());
            return new Subject(cache, cluster);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private record Subject(ClusteredKvCache cache, TestCluster cluster) implements CacheUnderTest {

        @Override
        public void validate() {
            cluster.servers().forEach(server -> server.store.validate());
        }

        @Override
        public void settle() {
            for (TestCluster.Server server : cluster.servers()) {
                long start = System.nanoTime();
                cache.stats();
                while (server.store.stats().openTables() > 0 && System.nanoTime() - start < PATIENCE.toNanos()) {
                    LockSupport.parkNanos(LOOK_NANOS);
                }
            }
        }

        @Override
        public boolean checked() {
            return true;
        }

        @Override
        public void close() {
            cache.close();
            try {
                cluster.close();
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(ClusteredKvCacheContractTest::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(ClusteredKvCacheContractTest::open);
        }
    }
}

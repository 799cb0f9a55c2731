package io.kvcache.transport.peer;

import io.kvcache.core.KvCache;
import io.kvcache.core.contract.ArgumentContract;
import io.kvcache.core.contract.BlockContract;
import io.kvcache.core.contract.BlockWriterContract;
import io.kvcache.core.contract.CacheSetup;
import io.kvcache.core.contract.CacheUnderTest;
import io.kvcache.core.contract.CapacityContract;
import io.kvcache.core.contract.ConcurrencyContract;
import io.kvcache.core.contract.EventContract;
import io.kvcache.core.contract.HintContract;
import io.kvcache.core.contract.KvCacheContract;
import io.kvcache.core.contract.LifecycleContract;
import io.kvcache.core.contract.LocalObjectContract;
import io.kvcache.core.contract.ManualClock;
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;

/// An embedded store over one server, which it asks and gives nothing to: what a store does alone.
@Tag(KvCacheContract.CARRIER)
final class NearKvCacheContractTest {

    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private static CacheUnderTest open(CacheSetup setup) {
        AtomicLong now = new AtomicLong();
        TieredKvCacheBuilder builder = TieredKvCache.builder()
                .hostBytes(setup.hostBytes())
                .eventCapacity(setup.eventCapacity())
                .checkSegments(true)
                .failOnLeak(setup.strict())
                .trackOpenHandles(true)
                .prefaultInBackground(false)
                .closeWait(Duration.ofMillis(100));
        TieredKvCache store = (setup.manualTime() ? builder.clock(new ManualClock(now)) : builder).build();
        TieredKvCache peer = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .build();
        try {
            TcpEndpoint endpoint = TcpEndpoint.open(
                    peer, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
            NearKvCache cache = NearKvCache.over(
                    store,
                    RemoteKvCache.builder("127.0.0.1:" + endpoint.address().getPort())
                            .requestTimeout(PATIENCE)
                            .connect(),
                    new NearKvCache.Dependencies(
                            Executors.newFixedThreadPool(BlockFetcher.THREADS),
                            null,
                            PeerClock.MACHINE,
                            BlockFetcher.MISS_TTL));
            return new Subject(cache, store, endpoint, peer, setup, now);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private record Subject(
            NearKvCache cache,
            TieredKvCache store,
            TcpEndpoint endpoint,
            TieredKvCache peer,
            CacheSetup setup,
            AtomicLong now)
            implements CacheUnderTest {

        @Override
        public void validate() {
            store.validate();
        }

        @Override
        public boolean advance(Duration by) {
            now.addAndGet(by.toNanos());
            return setup.manualTime();
        }

        @Override
        public boolean checked() {
            return true;
        }

        @Override
        @SuppressWarnings("try") // closed one after the other, whatever fails
        public void close() {
            try (KvCache last = peer;
                    TcpEndpoint before = endpoint) {
                if (open()) {
                    cache.close();
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private boolean open() {
            try {
                store.stats();
                return true;
            } catch (IllegalStateException closed) {
                return false;
            }
        }
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class LocalObjects extends LocalObjectContract {
        LocalObjects() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class Refusals extends ArgumentContract {
        Refusals() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class Capacity extends CapacityContract {
        Capacity() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hints extends HintContract {
        Hints() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class Events extends EventContract {
        Events() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(NearKvCacheContractTest::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(NearKvCacheContractTest::open);
        }
    }
}

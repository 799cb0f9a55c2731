package io.kvcache.transport.client;

import io.kvcache.core.KvCache;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.contract.ArgumentContract;
import io.kvcache.core.contract.BlockContract;
import io.kvcache.core.contract.BlockWriterContract;
import io.kvcache.core.contract.CacheSetup;
import io.kvcache.core.contract.CacheUnderTest;
import io.kvcache.core.contract.CapacityContract;
import io.kvcache.core.contract.ConcurrencyContract;
import io.kvcache.core.contract.EventContract;
import io.kvcache.core.contract.HintContract;
import io.kvcache.core.contract.HybridContract;
import io.kvcache.core.contract.LifecycleContract;
import io.kvcache.core.contract.ManualClock;
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.EndpointStats;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;

/// A cache over TCP keeps the contract of every `KvCache`.
@Tag("slow")
final class RemoteKvCacheContractTest {

    private static CacheUnderTest open(CacheSetup setup) {
        return open(setup, UnaryOperator.identity(), "");
    }

    /// A store that other processes may use, how they reach it, and what it has for them.
    record ServedStore(CloseableEndpoint endpoint, String address, Supplier<EndpointStats> stats) {}

    /// Ends serving.
    @FunctionalInterface
    interface CloseableEndpoint extends AutoCloseable {

        /// Ends all connections.
        @Override
        void close() throws IOException;
    }

    /// Begins to serve.
    @FunctionalInterface
    interface EndpointFactory {

        /// Serves a store until it is closed.
        ServedStore serve(LocalKvCache store) throws IOException;
    }

    /// Opens a cache of a store with something beside what the contract asks for.
    ///
    /// @param scheme what the address begins with
    static CacheUnderTest open(CacheSetup setup, UnaryOperator<TieredKvCacheBuilder> more, String scheme) {
        return open(setup, more, store -> {
            TcpEndpoint endpoint = TcpEndpoint.open(
                    store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
            return new ServedStore(
                    endpoint::close, scheme + "127.0.0.1:" + endpoint.address().getPort(), endpoint::stats);
        });
    }

    /// Opens a cache of a store that is served somehow.
    static CacheUnderTest open(
            CacheSetup setup, UnaryOperator<TieredKvCacheBuilder> more, EndpointFactory endpointFactory) {
        ManualClock time = new ManualClock();
        TieredKvCacheBuilder builder = TieredKvCache.builder()
                .hostBytes(setup.hostBytes())
                .eventCapacity(setup.eventCapacity())
                .checkSegments(true)
                .failOnLeak(true)
                .trackOpenHandles(true)
                .prefaultInBackground(false)
                .closeWait(Duration.ofSeconds(10));
        TieredKvCache store =
                more.apply(setup.manualTime() ? builder.clock(time) : builder).build();
        try {
            ServedStore servedStore = endpointFactory.serve(store);
            RemoteKvCache cache = RemoteKvCache.builder(servedStore.address())
                    .memoryBytes(Math.max(256L << 20, 3 * setup.hostBytes()))
                    .checked(true)
                    .strict(setup.strict())
                    .requestTimeout(TestBlocks.PATIENCE)
                    .connect();
            return new Subject(cache, servedStore, store, setup, time);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private record Subject(
            RemoteKvCache cache, ServedStore servedStore, TieredKvCache store, CacheSetup setup, ManualClock time)
            implements CacheUnderTest {

        @Override
        public void validate() {
            store.validate();
        }

        /// What is let go is told without waiting, and before whatever is asked for next. The server then waits
        /// for a thread of its own that has just sent a block, but not for as long as that may be kept from
        /// running: until it does, the store has a table more than the endpoint holds for anybody.
        @Override
        public void settle() {
            cache.stats();
            TestBlocks.await("the server lets go", () -> store.stats().openTables() == held());
        }

        private long held() {
            EndpointStats stats = servedStore.stats().get();
            return stats.leases().open() + stats.reservations().open();
        }

        @Override
        public boolean advance(Duration by) {
            time.sleep(by.toNanos());
            return setup.manualTime();
        }

        @Override
        public boolean checked() {
            return true;
        }

        @Override
        @SuppressWarnings("try") // closed one after the other, whatever fails
        public void close() {
            try (KvCache last = store;
                    CloseableEndpoint before = servedStore.endpoint()) {
                if (open()) {
                    cache.close();
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }

        private boolean open() {
            try {
                cache.remoteStats();
                return true;
            } catch (IllegalStateException closed) {
                return false;
            }
        }
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hybrids extends HybridContract {
        Hybrids() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class Refusals extends ArgumentContract {
        Refusals() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class Capacity extends CapacityContract {
        Capacity() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hints extends HintContract {
        Hints() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class Events extends EventContract {
        Events() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(RemoteKvCacheContractTest::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(RemoteKvCacheContractTest::open);
        }
    }
}

package io.kvcache.transport.client;

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
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;

/// A cache of several servers, the first of which is dead, keeps the contract of every `KvCache`.
@Tag(KvCacheContract.CARRIER)
final class ServerListContractTest {

    private static CacheUnderTest open(CacheSetup setup) {
        return RemoteKvCacheContractTest.open(setup, UnaryOperator.identity(), store -> {
            TcpEndpoint endpoint = TcpEndpoint.open(
                    store, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
            String there = "127.0.0.1:" + endpoint.address().getPort();
            return new RemoteKvCacheContractTest.ServedStore(
                    endpoint::close, List.of("127.0.0.1:1", there, "127.0.0.1:2"), endpoint::stats);
        });
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(ServerListContractTest::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(ServerListContractTest::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(ServerListContractTest::open);
        }
    }

    @Nested
    final class Refusals extends ArgumentContract {
        Refusals() {
            super(ServerListContractTest::open);
        }
    }

    @Nested
    final class Capacity extends CapacityContract {
        Capacity() {
            super(ServerListContractTest::open);
        }
    }

    @Nested
    final class Hints extends HintContract {
        Hints() {
            super(ServerListContractTest::open);
        }
    }

    @Nested
    final class Events extends EventContract {
        Events() {
            super(ServerListContractTest::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(ServerListContractTest::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(ServerListContractTest::open);
        }
    }
}

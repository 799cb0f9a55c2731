package io.kvcache.transport.remote;

import io.kvcache.core.contract.BlockContract;
import io.kvcache.core.contract.BlockWriterContract;
import io.kvcache.core.contract.CacheSetup;
import io.kvcache.core.contract.CacheUnderTest;
import io.kvcache.core.contract.CapacityContract;
import io.kvcache.core.contract.ConcurrencyContract;
import io.kvcache.core.contract.EventContract;
import io.kvcache.core.contract.HintContract;
import io.kvcache.core.contract.LifecycleContract;
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.core.contract.RefusalContract;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.endpoint.EndpointOptions;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.io.TempDir;

/// A cache over Aeron keeps the contract of every `KvCache`; each store has a media driver of its own.
final class AeronKvCacheContractTest {

    private static final AtomicInteger FOLDERS = new AtomicInteger();

    @TempDir
    private static Path folder = Path.of("");

    private static CacheUnderTest open(CacheSetup setup) {
        String address = "aeron:ipc?dir=" + folder.resolve("aeron-" + FOLDERS.incrementAndGet());
        return RemoteKvCacheContractTest.open(setup, UnaryOperator.identity(), store -> {
            AeronEndpoint endpoint = AeronEndpoint.open(store, address, EndpointOptions.DEFAULTS);
            return new RemoteKvCacheContractTest.Served(endpoint::close, endpoint.address());
        });
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(AeronKvCacheContractTest::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(AeronKvCacheContractTest::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(AeronKvCacheContractTest::open);
        }
    }

    @Nested
    final class Refusals extends RefusalContract {
        Refusals() {
            super(AeronKvCacheContractTest::open);
        }
    }

    @Nested
    final class Capacity extends CapacityContract {
        Capacity() {
            super(AeronKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hints extends HintContract {
        Hints() {
            super(AeronKvCacheContractTest::open);
        }
    }

    @Nested
    final class Events extends EventContract {
        Events() {
            super(AeronKvCacheContractTest::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(AeronKvCacheContractTest::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(AeronKvCacheContractTest::open);
        }
    }
}

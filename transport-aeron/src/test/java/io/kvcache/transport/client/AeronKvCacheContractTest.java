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
import io.kvcache.core.contract.HybridContract;
import io.kvcache.core.contract.KvCacheContract;
import io.kvcache.core.contract.LifecycleContract;
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.core.contract.Repetitions;
import io.kvcache.transport.aeron.AeronEndpoint;
import io.kvcache.transport.aeron.TestMediaDriver;
import io.kvcache.transport.endpoint.EndpointOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.FieldSource;

/// A cache over Aeron keeps the contract of every `KvCache`: by IPC, where each store has a media
/// driver of its own, and by UDP, where all have one.
@ParameterizedClass
@FieldSource("MEDIA")
@Tag(KvCacheContract.CARRIER)
final class AeronKvCacheContractTest {

    static final List<String> MEDIA = List.of("udp", "ipc").subList(0, Repetitions.usualOrFull(1, 2));

    private static final AtomicInteger FOLDERS = new AtomicInteger();

    @TempDir
    private static Path folder = Path.of("");

    private static @Nullable TestMediaDriver driver;

    @Parameter
    private String media = "";

    @BeforeAll
    static void startDriver() throws IOException {
        driver = TestMediaDriver.start();
    }

    @AfterAll
    static void endDriver() throws IOException {
        driver().close();
    }

    private static TestMediaDriver driver() {
        TestMediaDriver started = driver;
        if (started == null) {
            throw new IllegalStateException("no driver was started");
        }
        return started;
    }

    private CacheUnderTest open(CacheSetup setup) {
        boolean ipc = media.equals("ipc");
        String parameter = driver().parameter();
        String address = ipc
                ? "aeron:ipc?dir=" + folder.resolve("aeron-" + FOLDERS.incrementAndGet())
                : "aeron:udp?endpoint=127.0.0.1:0|" + parameter;
        return RemoteKvCacheContractTest.open(setup, UnaryOperator.identity(), store -> {
            AeronEndpoint endpoint = AeronEndpoint.open(store, address, EndpointOptions.DEFAULTS);
            return new RemoteKvCacheContractTest.ServedStore(
                    endpoint::close, endpoint.address() + (ipc ? "" : "|" + parameter), endpoint::stats);
        });
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Hybrids extends HybridContract {
        Hybrids() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Refusals extends ArgumentContract {
        Refusals() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Capacity extends CapacityContract {
        Capacity() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Hints extends HintContract {
        Hints() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Events extends EventContract {
        Events() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(AeronKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(AeronKvCacheContractTest.this::open);
        }
    }
}

package io.kvcache.transport.client;

import static org.assertj.core.api.Assertions.assertThat;

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
import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.shm.ShmDirectory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.FieldSource;

/// A cache whose blocks are read one-sided over UCX keeps the contract of every `KvCache`, by TCP and by shared
/// memory.
@EnabledIf(value = "io.kvcache.transport.ucx.UcxMemory#possible", disabledReason = "libucx0 is not installed")
@ParameterizedClass
@FieldSource("MEDIA")
@Tag(KvCacheContract.CARRIER)
final class UcxKvCacheContractTest {

    static final List<String> MEDIA = List.of("tcp", "shm").subList(0, Repetitions.usualOrFull(1, 2));

    private static final List<ShmDirectory> FOLDERS = new ArrayList<>();

    @Parameter
    private String transports = "";

    private CacheUnderTest open(CacheSetup setup) {
        ShmDirectory folder = ShmDirectory.make();
        synchronized (FOLDERS) {
            FOLDERS.add(folder);
        }
        return RemoteKvCacheContractTest.open(setup, builder -> builder.shareMemory(folder.path()), store -> {
            UcxServer server = UcxServer.open(store, transports);
            return new RemoteKvCacheContractTest.ServedStore(server::close, server.address(), server.endpoint()::stats);
        });
    }

    /// Without this, all of the contract could be kept by messages, and nobody would see it.
    @Test
    void givenTheCacheThatKeepsTheContract_whenRead_thenItsBlocksAreFetchedOneSided() {
        try (CacheUnderTest opened = open(CacheSetup.SMALL)) {
            RemoteKvCache cache = (RemoteKvCache) opened.cache();
            cache.register(TestBlocks.SPACE);
            BlockChain chain = TestBlocks.stored(cache, 1, 5);
            assertThat(TestBlocks.verified(cache, chain)).isEqualTo(5);
            assertThat(cache.remoteStats().fetched()).isEqualTo(5);
        }
    }

    @AfterAll
    static void removeFolders() {
        FOLDERS.forEach(ShmDirectory::close);
        FOLDERS.clear();
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Hybrids extends HybridContract {
        Hybrids() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Refusals extends ArgumentContract {
        Refusals() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Capacity extends CapacityContract {
        Capacity() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Hints extends HintContract {
        Hints() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Events extends EventContract {
        Events() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(UcxKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(UcxKvCacheContractTest.this::open);
        }
    }
}

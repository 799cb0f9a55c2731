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
import io.kvcache.transport.shm.ShmDirectory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// A cache over shared memory keeps the contract of every `KvCache`: the address asks for it, so a store
/// whose memory is not mapped would not be connected to.
@EnabledOnOs(OS.LINUX)
@Tag(KvCacheContract.CARRIER)
final class SharedKvCacheContractTest {

    private static final List<ShmDirectory> FOLDERS = new ArrayList<>();

    private static CacheUnderTest open(CacheSetup setup) {
        ShmDirectory folder = ShmDirectory.make();
        synchronized (FOLDERS) {
            FOLDERS.add(folder);
        }
        return RemoteKvCacheContractTest.open(setup, builder -> builder.shareMemory(folder.path()), "shm:");
    }

    @AfterAll
    static void removeFolders() {
        FOLDERS.forEach(ShmDirectory::close);
        FOLDERS.clear();
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hybrids extends HybridContract {
        Hybrids() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class Refusals extends ArgumentContract {
        Refusals() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class Capacity extends CapacityContract {
        Capacity() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hints extends HintContract {
        Hints() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class Events extends EventContract {
        Events() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(SharedKvCacheContractTest::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(SharedKvCacheContractTest::open);
        }
    }
}

package io.kvcache.tiers;

import io.kvcache.core.contract.ArgumentContract;
import io.kvcache.core.contract.BlockContract;
import io.kvcache.core.contract.BlockWriterContract;
import io.kvcache.core.contract.CacheSetup;
import io.kvcache.core.contract.CacheUnderTest;
import io.kvcache.core.contract.ConcurrencyContract;
import io.kvcache.core.contract.HybridContract;
import io.kvcache.core.contract.KvCacheContract;
import io.kvcache.core.contract.LifecycleContract;
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.core.tier.AdmissionKind;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;

/// The embedded cache keeps the contract of every `KvCache` with a disk below it that everything is
/// written to. What the contract says of a full store is said of one without.
@Tag(KvCacheContract.CARRIER)
final class DiskKvCacheContractTest {

    private static final long DISK_BYTES = 64 << 20;

    /// A test's own: the disks of all of them together would take some GiB.
    @TempDir
    private Path folder;

    private CacheUnderTest open(CacheSetup setup) {
        try {
            Path disk = Files.createTempDirectory(folder, "disk");
            return TieredKvCacheContractTest.open(
                    setup, builder -> builder.admission(AdmissionKind.ALWAYS).disk(disk, DISK_BYTES));
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        }
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(DiskKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(DiskKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Hybrids extends HybridContract {
        Hybrids() {
            super(DiskKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(DiskKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Refusals extends ArgumentContract {
        Refusals() {
            super(DiskKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Lifecycle extends LifecycleContract {
        Lifecycle() {
            super(DiskKvCacheContractTest.this::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(DiskKvCacheContractTest.this::open);
        }
    }
}

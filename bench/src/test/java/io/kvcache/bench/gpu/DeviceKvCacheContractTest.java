package io.kvcache.bench.gpu;

import io.kvcache.core.contract.BlockContract;
import io.kvcache.core.contract.BlockWriterContract;
import io.kvcache.core.contract.CacheSetup;
import io.kvcache.core.contract.CacheUnderTest;
import io.kvcache.core.contract.ConcurrencyContract;
import io.kvcache.core.contract.HybridContract;
import io.kvcache.core.contract.KvCacheContract;
import io.kvcache.core.contract.ObjectContract;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.tiers.TieredKvCache;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;

/// The embedded cache keeps the contract of every `KvCache` with a device below it that everything is
/// written to, and that is late: of blocks, writers, objects and several threads. The contract of lifecycles
/// counts on a full store that gives way at once, which one that writes first does not.
@Tag(KvCacheContract.CARRIER)
final class DeviceKvCacheContractTest {

    private static final long DEVICE_BYTES = 64 << 20;
    private static final long LATE_NANOS = 20_000;

    private static CacheUnderTest open(CacheSetup setup) {
        CudaTier tier = CudaTier.withDriver(
                "a late device",
                () -> FakeDeviceDriver.open(2 * DEVICE_BYTES, () -> LockSupport.parkNanos(LATE_NANOS)),
                DEVICE_BYTES);
        return new DeviceCache(TieredKvCache.builder()
                .hostBytes(setup.hostBytes())
                .eventCapacity(setup.eventCapacity())
                .failOnLeak(setup.strict())
                .checkSegments(true)
                .trackOpenHandles(true)
                .prefaultInBackground(false)
                .closeWait(Duration.ofMillis(1))
                .admission(AdmissionKind.ALWAYS)
                .tier(tier)
                .build());
    }

    private static final class DeviceCache implements CacheUnderTest {

        private final TieredKvCache cache;

        DeviceCache(TieredKvCache cache) {
            this.cache = cache;
        }

        @Override
        public TieredKvCache cache() {
            return cache;
        }

        @Override
        public void validate() {
            cache.validate();
        }

        /// A block that is being written to the device is pinned for as long, and what waits will be.
        @Override
        public void settle() {
            while (open() && busy(cache.offloadStats())) {
                Pause.briefly();
            }
        }

        private static boolean busy(DiskTierStats now) {
            return now.writing() > 0 || now.waitingBytes() > 0;
        }

        private boolean open() {
            try {
                cache.stats();
                return true;
            } catch (IllegalStateException closed) {
                return false;
            }
        }

        @Override
        public boolean checked() {
            return true;
        }

        @Override
        public void close() {
            if (open()) {
                cache.close();
            }
        }
    }

    @Nested
    final class Blocks extends BlockContract {
        Blocks() {
            super(DeviceKvCacheContractTest::open);
        }
    }

    @Nested
    final class BlockWriters extends BlockWriterContract {
        BlockWriters() {
            super(DeviceKvCacheContractTest::open);
        }
    }

    @Nested
    final class Hybrids extends HybridContract {
        Hybrids() {
            super(DeviceKvCacheContractTest::open);
        }
    }

    @Nested
    final class Objects extends ObjectContract {
        Objects() {
            super(DeviceKvCacheContractTest::open);
        }
    }

    @Nested
    final class Concurrency extends ConcurrencyContract {
        Concurrency() {
            super(DeviceKvCacheContractTest::open);
        }
    }
}

package io.kvcache.gpu.tier;

import io.kvcache.core.contract.TierContract;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.host.BlockableDevice;
import org.junit.jupiter.api.Nested;

/// A device tier keeps the contract of every tier.
final class DeviceTierContractTest {

    private static final long DEVICE_BYTES = 32 << 20;

    @Nested
    final class OverHostMemory extends TierContract {
        OverHostMemory() {
            super(() -> new TierOnADevice(new BlockableDevice(DEVICE_BYTES, 0)));
        }
    }

    @Nested
    final class OverLateHostMemory extends TierContract {
        OverLateHostMemory() {
            super(() -> new TierOnADevice(new BlockableDevice(DEVICE_BYTES, 50_000)));
        }
    }

    @Nested
    final class OverCuda extends TierContract {
        OverCuda() {
            super(() -> new TierOnADevice(FakeCuda.reset()));
        }
    }
}

package io.kvcache.gpu.tier;

import io.kvcache.core.contract.TierContract;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.host.BlockableDevice;
import org.junit.jupiter.api.Nested;

/// A device tier keeps the contract of every tier.
final class DeviceTierContractTest {

    private static final long DEVICE_BYTES = 32 << 20;

    @Nested
    final class OnFakeDevice extends TierContract {
        OnFakeDevice() {
            super(() -> new DeviceTierUnderTest(new BlockableDevice(DEVICE_BYTES, 0)));
        }
    }

    @Nested
    final class OnSlowFakeDevice extends TierContract {
        OnSlowFakeDevice() {
            super(() -> new DeviceTierUnderTest(new BlockableDevice(DEVICE_BYTES, 50_000)));
        }
    }

    @Nested
    final class OnCuda extends TierContract {
        OnCuda() {
            super(() -> new DeviceTierUnderTest(FakeCuda.reset()));
        }
    }
}

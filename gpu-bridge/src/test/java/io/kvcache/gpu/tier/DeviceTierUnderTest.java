package io.kvcache.gpu.tier;

import io.kvcache.core.contract.TierUnderTest;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.gpu.driver.DeviceUnderTest;
import java.lang.foreign.MemorySegment;

/// A tier on a device, for the contract of all tiers.
record DeviceTierUnderTest(DeviceUnderTest device) implements TierUnderTest {

    static final long BYTES = 8 << 20;

    @Override
    public Tier open(TierListener listener) {
        return new DeviceTier("device", device.open(), DeviceGeometry.of(BYTES), MemorySegment.NULL, listener);
    }

    @Override
    public long waitNanos() {
        return 1_000_000;
    }

    @Override
    public void close() {
        if (!device.left().isEmpty()) {
            throw new AssertionError("the device was left with " + device.left());
        }
    }
}

package io.kvcache.gpu.tier;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import java.lang.foreign.MemorySegment;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/// A store's side of a device tier over the stand-in alone: without what it logs, and with nothing left behind.
final class DeviceTierExtension implements BeforeEachCallback, AfterEachCallback {

    static final long BYTES = 4 << 20;

    final FakeCuda fakeCuda = FakeCuda.reset();
    final DeviceTierHarness store = new DeviceTierHarness();
    private final Logger log = Logger.getLogger("io.kvcache.gpu");

    @Override
    public void beforeEach(ExtensionContext test) {
        assumeThat(fakeCuda.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        log.setLevel(Level.OFF);
    }

    @Override
    public void afterEach(ExtensionContext test) {
        log.setLevel(null);
        FakeCuda.reset();
        assertThat(fakeCuda.left()).isEmpty();
        store.close();
    }

    DeviceTier open(DeviceDriver driver) {
        DeviceTier tier = new DeviceTier("device", driver, DeviceGeometry.of(BYTES), MemorySegment.NULL, store);
        store.tick(tier);
        return tier;
    }

    void write(DeviceTier tier, BlockKey key) {
        store.tickUntil(tier, () -> store.write(tier, key));
    }

    void settle(DeviceTier tier) {
        store.tickUntil(tier, () -> store.inFlight() == 0 && tier.isIdle());
    }
}

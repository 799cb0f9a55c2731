package io.kvcache.gpu.tier;

import static io.kvcache.gpu.tier.DeviceTierHarness.chain;
import static io.kvcache.gpu.tier.DeviceTierHarness.key;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.tier.TierState;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.cuda.LeakCheckingDrivers;
import io.kvcache.gpu.driver.DeviceException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.FieldSource;

/// Every call of the driver fails once, each in turn, while a tier is written to until it reclaims,
/// is read from and looked at, and another driver of the process keeps the context.
final class DeviceTierFaultsTest {

    static final List<Integer> CODES = List.of(2, 46, 999).subList(0, Repetitions.usualOrFull(2, 3));

    private static final int MIN_CALLS = 100;
    private static final int BLOCKS = 60;
    private static final int AT_A_TIME = 5;
    private static final DeviceGeometry SMALL = DeviceGeometry.of(1 << 20);

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final LeakCheckingDrivers drivers = new LeakCheckingDrivers(fakeCuda);
    private final DeviceTierHarness store = new DeviceTierHarness();
    private final Arena arena = Arena.ofShared();
    private final MemorySegment slots = arena.allocate(1 << 20, 4096);
    private long reclaimed;

    @AfterEach
    void close() {
        FakeCuda.reset();
        assertThat(fakeCuda.left()).isEmpty();
        store.close();
        arena.close();
    }

    @ParameterizedTest
    @FieldSource("CODES")
    @Tag("slow")
    void givenAFaultAtEachCallInTurn_whenATierReclaims_thenNeverAWrongByteNorALeak(int code) throws Exception {
        FaultInjection.assumePossible(fakeCuda);
        fakeCuda.delay(20);
        FaultInjection.inject(fakeCuda, "reclaiming tier", code, MIN_CALLS, (_, begin) -> {
            store.places.clear();
            begin.run();
            boolean served = work();
            assertThat(store.inFlight()).as("all is told").isZero();
            drivers.requireNoLeaks();
            return served;
        });
        assertThat(reclaimed).isPositive();
    }

    /// Answers whether the tier served to the end.
    private boolean work() {
        DeviceTier tier;
        try {
            tier = new DeviceTier("device", drivers.open(), SMALL, slots, store);
        } catch (DeviceException refused) {
            return false;
        }
        store.tick(tier);
        BlockChain chain = chain(2);
        List<DeviceBlockTable> pinned = List.of();
        for (int i = 0; i < BLOCKS && tier.state() == TierState.SERVING; i++) {
            store.write(tier, i < 2 ? chain.key(i) : key(i));
            if (i % AT_A_TIME == AT_A_TIME - 1) {
                settle(tier);
                store.places.keySet().stream().limit(AT_A_TIME).toList().forEach(known -> store.read(tier, known));
                settle(tier);
            }
            if (i == AT_A_TIME) {
                pinned = List.of(tier.acquire(chain, 0));
            }
        }
        pinned.forEach(DeviceBlockTable::close);
        settle(tier);
        reclaimed += tier.stats().regionsReclaimed();
        boolean served = tier.state() == TierState.SERVING;
        tier.close();
        return served;
    }

    private void settle(DeviceTier tier) {
        store.tickUntil(tier, () -> store.inFlight() == 0 && (tier.isIdle() || tier.state() == TierState.FAILED));
    }
}

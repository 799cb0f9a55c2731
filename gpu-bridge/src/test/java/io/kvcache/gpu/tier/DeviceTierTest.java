package io.kvcache.gpu.tier;

import static io.kvcache.gpu.tier.DeviceTierHarness.BLOCK_BYTES;
import static io.kvcache.gpu.tier.DeviceTierHarness.chain;
import static io.kvcache.gpu.tier.DeviceTierHarness.key;
import static io.kvcache.gpu.tier.DeviceTierHarness.requireOnDevice;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierState;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.FaultInjection;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.host.FakeDeviceDriver;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What a device tier does besides the contract of all tiers, over the stand-in for NVIDIA's driver.
final class DeviceTierTest {

    private static final int MAX_CALLS = 20_000;
    private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);

    @RegisterExtension
    private final DeviceTierExtension rig = new DeviceTierExtension();

    private final FakeCuda fakeCuda = rig.fakeCuda;
    private final DeviceTierHarness store = rig.store;

    private DeviceTier open() {
        return rig.open(fakeCuda.open());
    }

    @Test
    void givenAHeldDevice_whenABlockIsWritten_thenItsSlotIsNotGivenBackUntilTheDeviceHasIt() {
        DeviceTier tier = open();
        fakeCuda.hold();
        rig.write(tier, key(1));
        for (int i = 0; i < 20; i++) {
            store.tick(tier);
        }
        assertThat(store.written).as("told before the event").isZero();
        assertThat(tier.isIdle()).isFalse();
        fakeCuda.release();
        rig.settle(tier);
        assertThat(store.written).isEqualTo(1);
        assertThat(store.read(tier, key(1))).isTrue();
        rig.settle(tier);
        assertThat(store.good).isEqualTo(1);
        tier.close();
    }

    @Test
    void givenManyBlocksInOneTick_whenWrittenAndRead_thenOneBatchEach() {
        DeviceTier tier = open();
        for (int i = 0; i < 10; i++) {
            rig.write(tier, key(i));
        }
        rig.settle(tier);
        for (int i = 0; i < 10; i++) {
            assertThat(store.read(tier, key(i))).isTrue();
        }
        rig.settle(tier);
        assertThat(store.good).isEqualTo(10);
        assertThat(fakeCuda.calls("cuMemcpyBatchAsync_v2")).isEqualTo(2);
        assertThat(fakeCuda.calls("cuMemcpyHtoDAsync_v2")).isZero();
        tier.close();
    }

    /// Slots are filled with something else the moment they are given back, and regions are reclaimed all
    /// the time: a copy that was told too early, or memory used again too early, shows as a wrong byte.
    @ParameterizedTest
    @ValueSource(ints = {0, 40})
    void givenADeviceThatIsLate_whenBlocksComeAndGo_thenEveryByteIsRight(int delayMicros) {
        fakeCuda.delay(delayMicros);
        DeviceTier tier = open();
        Random random = new Random(delayMicros);
        long number = 0;
        long start = System.nanoTime();
        while (tier.stats().regionsReclaimed() < 20 || store.good < 500) {
            assertThat(System.nanoTime() - start).as("nanoseconds").isLessThan(TIMEOUT_NANOS);
            if (random.nextInt(3) == 0) {
                store.write(tier, key(number++));
            } else if (!store.places.isEmpty()) {
                List<BlockKey> known = new ArrayList<>(store.places.keySet());
                known.sort((one, other) -> Long.compare(one.hi(), other.hi()));
                store.read(tier, known.get(random.nextInt(known.size())));
            }
            if (random.nextInt(8) == 0) {
                store.tick(tier, random.nextBoolean() ? 0 : 50_000);
            }
        }
        rig.settle(tier);
        assertThat(tier.stats().blocksKept()).isGreaterThan(5);
        assertThat(store.refused + store.notRead).isZero();
        tier.close();
    }

    @Test
    void givenAFlush_whenAsked_thenNothingIsDurable() {
        DeviceTier tier = open();
        assertThat(tier.flush(1)).isEqualTo(SubmitResult.ACCEPTED);
        store.tickUntil(tier, () -> !store.flushes.isEmpty());
        assertThat(store.flushes).containsExactly(false);
        tier.close();
    }

    @Test
    void givenAChainOnTheDevice_whenAcquired_thenItsBytesAreWhereTheTableSays() {
        DeviceDriver driver = fakeCuda.open();
        DeviceTier tier = rig.open(driver);
        BlockChain chain = chain(6);
        for (int i = 0; i < 4; i++) {
            rig.write(tier, chain.key(i));
        }
        rig.settle(tier);
        try (DeviceBlockTable table = tier.acquire(chain, 1)) {
            assertThat(table.firstBlock()).isEqualTo(1);
            assertThat(table.endBlock()).isEqualTo(4);
            for (int i = 1; i < 4; i++) {
                requireOnDevice(driver, table.span(i), chain.key(i));
            }
        }
        store.tombstone(tier, chain.key(2));
        try (DeviceBlockTable table = tier.acquire(chain, 0)) {
            assertThat(table.endBlock()).as("what is buried ends the prefix").isEqualTo(2);
        }
        tier.close();
    }

    @Test
    void givenATableThatWasAcquired_whenTheTierTicks_thenTheStoreHearsOfEachUseDeepestFirst() {
        DeviceTier tier = open();
        BlockChain chain = chain(4);
        for (int i = 0; i < 3; i++) {
            rig.write(tier, chain.key(i));
        }
        rig.settle(tier);
        tier.acquire(chain, 1).close();
        store.tick(tier);
        assertThat(store.used).containsExactly(chain.key(2), chain.key(1));
        tier.close();
    }

    private DeviceBlockTable verified(DeviceTier tier, BlockChain chain, int from) {
        CompletableFuture<DeviceBlockTable> answer =
                tier.acquireVerified(chain, from).toCompletableFuture();
        store.tickUntil(tier, answer::isDone);
        return answer.join();
    }

    @Test
    void givenBlocksOnTheDevice_whenTheDeviceLooksAtThem_thenWhatWasChangedIsNotFoundAnyMore() {
        DeviceDriver driver = fakeCuda.open();
        DeviceTier tier = rig.open(driver);
        BlockChain chain = chain(90);
        for (int i = 0; i < 80; i++) {
            rig.write(tier, chain.key(i));
        }
        rig.settle(tier);
        DeviceSpan last;
        try (DeviceBlockTable table = verified(tier, chain, 3)) {
            assertThat(driver.resourceCounts().registrations())
                    .as("where the sums come to")
                    .isEqualTo(1);
            assertThat(table.firstBlock()).isEqualTo(3);
            assertThat(table.endBlock()).isEqualTo(80);
            last = table.span(77).slice(BLOCK_BYTES - 1, 1);
        }
        DeviceStream stream = driver.openStream(Priority.NORMAL);
        stream.fill(last, (byte) 0x3C);
        store.tickUntil(tier, stream::isIdle);
        stream.close();
        assertThat(tier.stats().checksumErrors()).isZero();
        try (DeviceBlockTable table = verified(tier, chain, 3)) {
            assertThat(table.endBlock()).isEqualTo(77);
            requireOnDevice(driver, table.span(76), chain.key(76));
        }
        assertThat(tier.stats().checksumErrors()).isEqualTo(1);
        try (DeviceBlockTable table = tier.acquire(chain, 0)) {
            assertThat(table.endBlock()).isEqualTo(77);
        }
        try (DeviceBlockTable table = verified(tier, chain, 85)) {
            assertThat(table.endBlock()).as("of nothing").isEqualTo(85);
        }
        tier.close();
        assertThat(tier.acquireVerified(chain, 2).toCompletableFuture().join().endBlock())
                .as("of a tier that is closed")
                .isEqualTo(2);
    }

    @Test
    void givenADeviceThatRunsNoCode_whenAskedToLook_thenItSaysSoAndServesOn() {
        DeviceTier tier = rig.open(FakeDeviceDriver.open(2 * DeviceTierExtension.BYTES));
        BlockChain chain = chain(1);
        rig.write(tier, chain.key(0));
        rig.settle(tier);
        CompletableFuture<DeviceBlockTable> answer =
                tier.acquireVerified(chain, 0).toCompletableFuture();
        store.tickUntil(tier, answer::isDone);
        assertThat(answer).isCompletedExceptionally();
        assertThat(tier.state()).isEqualTo(TierState.SERVING);
        tier.close();
    }

    @Test
    @Tag("slow")
    void givenAnOpenTable_whenManyTimesTheDeviceIsWritten_thenItsBlocksStay() {
        DeviceDriver driver = fakeCuda.open();
        DeviceTier tier = rig.open(driver);
        BlockChain chain = chain(3);
        for (int i = 0; i < 3; i++) {
            rig.write(tier, chain.key(i));
        }
        rig.settle(tier);
        DeviceBlockTable table = tier.acquire(chain, 0);
        assertThat(table.endBlock()).isEqualTo(3);
        for (int i = 0; i < 1_000; i++) {
            rig.write(tier, key(3L * i + 1));
        }
        rig.settle(tier);
        for (int i = 0; i < 3; i++) {
            requireOnDevice(driver, table.span(i), chain.key(i));
        }
        assertThatIllegalStateException()
                .isThrownBy(() -> tier.closeWithin(TimeUnit.MILLISECONDS.toNanos(50)))
                .withMessageContaining("a device table is open");
        table.close();
        table.close();
        tier.close();
    }

    /// The store's memory goes, and other memory may come to lie where it was.
    @Test
    @Tag("slow")
    void givenAnOpenTable_whenTheTierCannotBeClosed_thenTheSlotsAreNotRegisteredAnyMore() {
        DeviceDriver driver = fakeCuda.open();
        try (Arena arena = Arena.ofShared()) {
            MemorySegment slots = arena.allocate(1 << 20, 4096);
            DeviceTier tier =
                    new DeviceTier("device", driver, DeviceGeometry.of(DeviceTierExtension.BYTES), slots, store);
            store.tick(tier);
            BlockChain chain = chain(1);
            rig.write(tier, chain.key(0));
            rig.settle(tier);
            DeviceBlockTable table = tier.acquire(chain, 0);
            assertThat(driver.resourceCounts().registrations()).isEqualTo(1);
            assertThatIllegalStateException()
                    .isThrownBy(() -> tier.closeWithin(TimeUnit.MILLISECONDS.toNanos(50)))
                    .withMessageContaining("a device table is open");
            assertThat(driver.resourceCounts().registrations()).isZero();
            assertThat(fakeCuda.calls("cuMemHostUnregister")).isEqualTo(1);
            requireOnDevice(driver, table.span(0), chain.key(0));
            table.close();
            tier.close();
        }
    }

    @Test
    void givenEverythingPinned_whenWritten_thenLaterUntilATableCloses() {
        DeviceTier tier = open();
        List<DeviceBlockTable> tables = new ArrayList<>();
        BlockChain chain = chain(400);
        int index = 0;
        for (int tries = 0; tries < 1000 && index < 400; tries++) {
            if (store.write(tier, chain.key(index))) {
                rig.settle(tier);
                tables.add(tier.acquire(chain, index++));
            }
            store.tick(tier, 0);
        }
        assertThat(index).as("blocks that fit").isBetween(100, 399);
        int next = index;
        tables.forEach(DeviceBlockTable::close);
        store.tickUntil(tier, () -> store.write(tier, chain.key(next)));
        rig.settle(tier);
        tier.close();
    }

    @Test
    void givenADeviceThatIsLost_whenWorking_thenTheTierIsOutAndAllIsTold() {
        DeviceTier tier = open();
        rig.write(tier, key(1));
        rig.settle(tier);
        fakeCuda.hold();
        rig.write(tier, key(2));
        assertThat(store.read(tier, key(1))).isTrue();
        store.tick(tier, 0);
        fakeCuda.loseDevice(46);
        fakeCuda.release();
        store.tickUntil(tier, () -> tier.state() == TierState.FAILED);
        rig.settle(tier);
        assertThat(tier.cause()).contains("DEVICE_LOST");
        assertThat(store.refused).isEqualTo(1);
        assertThat(store.notRead).isEqualTo(1);
        assertThat(store.write(tier, key(3))).isFalse();
        tier.close();
    }

    /// Out of memory, and an answer that says the device is of no use any more.
    @ParameterizedTest
    @ValueSource(ints = {2, 700})
    @Tag("slow")
    void givenAFaultAtEachCallInTurn_whenWorking_thenNeverAWrongByteNorALeak(int code) {
        int faults = 0;
        int out = 0;
        for (int nth = FaultInjection.firstCall(); nth < MAX_CALLS; nth += FaultInjection.STRIDE) {
            FakeCuda.reset().failCall("", nth, code);
            out += workUnderFault() ? 0 : 1;
            assertThat(fakeCuda.left()).as("after a fault at call %d", nth).isEmpty();
            assertThat(store.inFlight())
                    .as("all is told after a fault at call %d", nth)
                    .isZero();
            if (fakeCuda.injected() == 0) {
                break;
            }
            faults++;
        }
        System.out.printf(
                "device tier faults injected: %d calls answered %d, the tier went out %d times%n", faults, code, out);
        assertThat(faults * FaultInjection.STRIDE).isGreaterThan(100);
    }

    /// Answers whether the tier served to the end.
    private boolean workUnderFault() {
        store.places.clear();
        DeviceTier tier;
        try {
            tier = open();
        } catch (DeviceException refused) {
            return false;
        }
        for (int i = 0; i < 30 && tier.state() == TierState.SERVING; i++) {
            store.write(tier, key(i));
            if (i % 5 == 4) {
                store.tick(tier, 50_000);
                store.places.keySet().stream().toList().forEach(known -> store.read(tier, known));
            }
        }
        BlockChain chain = chain(2);
        store.write(tier, chain.key(0));
        store.write(tier, chain.key(1));
        store.tickUntil(tier, () -> store.inFlight() == 0 && tier.isIdle());
        CompletionStage<DeviceBlockTable> looked = tier.acquireVerified(chain, 0);
        looked.whenComplete((table, _) -> {
            if (table != null) {
                table.close();
            }
        });
        store.tickUntil(tier, () -> looked.toCompletableFuture().isDone() && tier.isIdle());
        boolean served = tier.state() == TierState.SERVING;
        tier.close();
        return served;
    }
}

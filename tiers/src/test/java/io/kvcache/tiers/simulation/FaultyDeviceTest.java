package io.kvcache.tiers.simulation;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.core.check.BlockContent;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.BlockDeviceContract;
import io.kvcache.tiers.device.BlockDeviceMisuseContract;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.simulation.FaultRates.Fault;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class FaultyDeviceTest {

    private static final int SPAN = 4 * ALIGNMENT;

    private final MemorySegment storage = MemorySegment.ofArray(new byte[1 << 20]);
    private final AtomicLong clock = new AtomicLong();
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment source = filled(1);
    private final MemorySegment target = arena.allocate(SPAN, ALIGNMENT);

    @AfterEach
    void closeArena() {
        arena.close();
    }

    @Nested
    class Sound extends BlockDeviceContract {
        @Override
        protected BlockDevice open(long size, int depth) {
            return faulty(size, depth);
        }
    }

    @Nested
    class SoundMisuse extends BlockDeviceMisuseContract {
        @Override
        protected BlockDevice open(long size, int depth) {
            return faulty(size, depth);
        }
    }

    private BlockDevice faulty(long size, int depth) {
        BlockDevice below = MemoryDevice.create(storage.asSlice(0, size), depth);
        return new FaultyDevice(below, FaultRates.none().withMaxLatencyTicks(5), 1, clock::getAndIncrement);
    }

    @Test
    void givenReadErrors_whenRead_thenFailedAndTheTargetIsJunk() {
        FaultyDevice device = device(FaultRates.none().with(Fault.READ_ERROR, 1));
        assertThat(calls(device).read(target, 0)).isEqualTo(new IoOutcome(IoOutcome.Kind.FAILED, "EIO"));
        assertThat(target.mismatch(MemorySegment.ofArray(new byte[SPAN]))).isZero();
        assertThat(device.count(Fault.READ_ERROR)).isEqualTo(1);
    }

    @Test
    void givenBitFlips_whenRead_thenOneBitIsWrong() {
        FaultyDevice device = device(FaultRates.none().with(Fault.BIT_FLIP, 1));
        assertThat(calls(device).read(target, 0).isDone()).isTrue();
        assertThat(bitsSet(target)).isEqualTo(1);
        assertThat(bitsSet(storage)).isZero();
        assertThat(device.count(Fault.BIT_FLIP)).isEqualTo(1);
    }

    @Test
    void givenTornWrites_whenWritten_thenDoneAndAFirstPartArrived() {
        FaultyDevice device = device(FaultRates.none().with(Fault.TORN_WRITE, 1));
        assertThat(calls(device).write(source, 0).isDone()).isTrue();
        assertThat(storage.asSlice(0, SPAN).mismatch(source) % 512).isZero();
        assertThat(storage.asSlice(SPAN - 512, 512).mismatch(MemorySegment.ofArray(new byte[512])))
                .isEqualTo(-1);
        assertThat(device.count(Fault.TORN_WRITE)).isEqualTo(1);
    }

    @Test
    void givenMisdirectedWrites_whenWritten_thenDoneAndTheBytesAreElsewhere() {
        FaultyDevice device = device(FaultRates.none().with(Fault.MISDIRECTED_WRITE, 1));
        assertThat(calls(device).write(source, 0).isDone()).isTrue();
        assertThat(storage.asSlice(0, SPAN).mismatch(source)).isNotEqualTo(-1);
        assertThat(bitsSet(storage)).isEqualTo(bitsSet(source));
        assertThat(device.count(Fault.MISDIRECTED_WRITE)).isEqualTo(1);
    }

    @Test
    void givenLostWrites_whenWritten_thenDoneAndNothingArrived() {
        FaultyDevice device = device(FaultRates.none().with(Fault.LOST_WRITE, 1));
        assertThat(calls(device).write(source, 0).isDone()).isTrue();
        assertThat(bitsSet(storage)).isZero();
        assertThat(device.count(Fault.LOST_WRITE)).isEqualTo(1);
    }

    @Test
    void givenWriteAndSyncErrors_whenUsed_thenTheyFail() {
        FaultyDevice device =
                device(FaultRates.none().with(Fault.WRITE_ERROR, 1).with(Fault.SYNC_ERROR, 1));
        assertThat(calls(device).write(source, 0).cause()).isEqualTo("EIO");
        assertThat(calls(device).sync().cause()).isEqualTo("EIO");
    }

    @Test
    void givenFullDevice_whenWritten_thenNoSpaceUntilThereIsSome() {
        FaultyDevice device = device(FaultRates.none());
        device.setFull(true);
        assertThat(calls(device).write(source, 0)).isEqualTo(new IoOutcome(IoOutcome.Kind.NO_SPACE, "ENOSPC"));
        assertThat(bitsSet(storage)).isZero();
        device.setFull(false);
        assertThat(calls(device).write(source, 0).isDone()).isTrue();
    }

    @Test
    void givenLatency_whenPolled_thenNothingEndsBeforeItsTick() {
        FaultyDevice device = device(FaultRates.none().withMaxLatencyTicks(1000));
        device.read(target, 0, 1);
        assertThat(device.poll((_, _) -> {})).isZero();
        clock.set(1000);
        assertThat(device.poll((_, _) -> {})).isEqualTo(1);
    }

    @Test
    void givenHangingDevice_whenResumed_thenAllEnds() {
        FaultyDevice device = device(FaultRates.none());
        device.hangAll();
        device.read(target, 0, 1);
        assertThat(device.poll((_, _) -> {})).isZero();
        assertThatIllegalStateException().isThrownBy(device::close).withMessageContaining("1 operations hang");
        device.resume();
        assertThat(device.poll((_, _) -> {})).isEqualTo(1);
    }

    @Test
    void givenHangingOperation_whenResumed_thenItEnds() {
        FaultyDevice device = device(FaultRates.none().with(Fault.HANG, 1));
        device.read(target, 0, 1);
        clock.set(Long.MAX_VALUE / 2);
        assertThat(device.poll((_, _) -> {})).isZero();
        device.resume();
        assertThat(device.poll((_, _) -> {})).isEqualTo(1);
        assertThat(device.count(Fault.HANG)).isEqualTo(1);
    }

    @Test
    void givenSyncedWrite_whenCrashed_thenItIsThere() {
        for (long seed = 0; seed < 20; seed++) {
            FaultyDevice device = device(FaultRates.none(), seed);
            calls(device).write(source, 0);
            calls(device).sync();
            calls(device).write(filled(2), SPAN);
            BlockDevice after = device.crash();
            calls(after).read(target, 0);
            new BlockContent(1).requireEqual(target);
        }
    }

    @Test
    void givenUnsyncedWrites_whenCrashed_thenSomeAreLostSomeTornAndSomeThere() {
        boolean[] seen = new boolean[3];
        for (long seed = 0; seed < 200; seed++) {
            storage.fill((byte) 0);
            FaultyDevice device = device(FaultRates.none(), seed);
            calls(device).write(source.asSlice(0, ALIGNMENT), 0);
            device.crash();
            long right = storage.asSlice(0, ALIGNMENT).mismatch(source.asSlice(0, ALIGNMENT));
            seen[right == 0 ? 0 : right == -1 ? 1 : 2] = true;
            assertThat(right == -1 || right % 512 == 0).isTrue();
        }
        assertThat(seen).containsOnly(true);
    }

    @Test
    void givenWriteAfterTheSyncWasQueued_whenCrashed_thenThatSyncDoesNotSaveIt() {
        int lost = 0;
        for (long seed = 0; seed < 50; seed++) {
            storage.fill((byte) 0);
            FaultyDevice device = device(FaultRates.none().withMaxLatencyTicks(3), seed);
            device.write(source, 0, 1);
            tickUntilIdle(device);
            device.write(filled(2), 0, 2);
            device.sync(3);
            tickUntilIdle(device);
            device.crash();
            long second = storage.asSlice(0, SPAN).mismatch(filled(2));
            lost += second == -1 ? 0 : 1;
            // Bytes not of the second write are of the first, page by page and sector by sector.
            for (long sector = 0; sector < SPAN; sector += 512) {
                MemorySegment found = storage.asSlice(sector, 512);
                assertThat(found.mismatch(source.asSlice(sector, 512)) == -1
                                || found.mismatch(filled(2).asSlice(sector, 512)) == -1)
                        .isTrue();
            }
        }
        assertThat(lost).isPositive();
    }

    @Test
    void givenCrashedDevice_whenUsed_thenItIsClosed() {
        FaultyDevice device = device(FaultRates.none());
        device.crash();
        assertThatIllegalStateException().isThrownBy(() -> device.sync(0)).withMessageContaining("closed");
    }

    @Test
    void givenSameSeed_whenRunTwice_thenTheSameHappens() {
        assertThat(run(7)).isEqualTo(run(7));
        assertThat(run(7)).isNotEqualTo(run(8));
    }

    @Test
    void givenRateOutOfRange_whenMade_thenTheErrorNamesIt() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> FaultRates.none().with(Fault.HANG, 1.5))
                .withMessage("HANG must be from 0.0 to 1.0, is 1.5");
    }

    /// All that can be seen of a run with every fault: completions in their order, counts, and bytes in the
    /// end.
    private List<String> run(long seed) {
        storage.fill((byte) 0);
        clock.set(0);
        FaultRates rates = FaultRates.none().withMaxLatencyTicks(10);
        for (Fault fault : Fault.values()) {
            rates = rates.with(fault, 0.1);
        }
        List<String> seen = new ArrayList<>();
        FaultyDevice device = device(rates, seed);
        for (int i = 0; i < 400; i++) {
            device.write(source, (long) i % 60 * SPAN, i);
            device.sync(1000 + i);
            device.read(target, (long) i % 50 * SPAN, 2000 + i);
            clock.incrementAndGet();
            device.poll((tag, outcome) -> seen.add(tag + " " + outcome));
            device.resume();
        }
        device.crash();
        for (Fault fault : Fault.values()) {
            assertThat(device.count(fault)).as("%s", fault).isPositive();
            seen.add(fault + " " + device.count(fault));
        }
        seen.add("bytes " + Arrays.hashCode(storage.toArray(JAVA_BYTE)));
        return seen;
    }

    private void tickUntilIdle(BlockDevice device) {
        while (device.inFlight() > 0) {
            clock.incrementAndGet();
            device.poll((_, _) -> {});
        }
    }

    private FaultyDevice device(FaultRates rates) {
        return device(rates, 1);
    }

    private FaultyDevice device(FaultRates rates, long seed) {
        return new FaultyDevice(MemoryDevice.create(storage, 8), rates, seed, clock::get);
    }

    private static BlockingDeviceIo calls(BlockDevice device) {
        return new BlockingDeviceIo(device);
    }

    private MemorySegment filled(long seed) {
        MemorySegment filled = arena.allocate(SPAN, ALIGNMENT);
        new BlockContent(seed).fill(filled);
        return filled;
    }

    private static long bitsSet(MemorySegment segment) {
        long bits = 0;
        for (byte one : segment.toArray(JAVA_BYTE)) {
            bits += Integer.bitCount(one & 0xFF);
        }
        return bits;
    }
}

package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskLogConfig.LogLimits;
import io.kvcache.tiers.disk.ScriptedDevice.Fate;
import io.kvcache.tiers.disk.ScriptedDevice.Operation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A log whose device fails.
final class LogFailureTest {

    private static final long BYTES = 7L << 20;
    private static final DiskGeometry GEOMETRY = DiskGeometry.of(BYTES);
    private static final DiskLogConfig CONFIG =
            DiskLogConfig.of(GEOMETRY, 0xABCDEF).withLimits(new LogLimits(64, 64, 1 << 20, 100, 8, 1_000_000_000));

    private final DiskLogSilencer quiet = new DiskLogSilencer();
    private final Arena arena = Arena.ofConfined();
    private final MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
    private final ScriptedDevice device = new ScriptedDevice(MemoryDevice.create(storage, 32));
    private final DiskLogHarness rig = new DiskLogHarness(arena);

    @BeforeEach
    void open() {
        quiet.silence();
        rig.openAndSettle(device, CONFIG);
        append(3);
        rig.settle();
    }

    @AfterEach
    void close() {
        quiet.restore();
        arena.close();
    }

    private void append(int blocks) {
        for (int i = 0; i < blocks; i++) {
            assertThat(rig.append(10_000)).isPositive();
        }
    }

    private void fail(Operation which, Fate fate) {
        device.setPicker((operation, _) -> operation == which ? fate : Fate.DONE);
    }

    private static long block(int page) {
        return GEOMETRY.regionOffset(0) + (long) page * DiskGeometry.PAGE_BYTES;
    }

    @Test
    void givenAHeadThatCannotBeWritten_whenFlushed_thenTheTrailerLeadsToWhatCameAfterIt() {
        device.setPicker(
                (operation, offset) -> operation == Operation.WRITE && offset == block(10) ? Fate.LATER : Fate.DONE);
        append(2);
        rig.tick();
        append(3);
        rig.tick();
        rig.tick();
        rig.flush();
        device.setPicker(
                (operation, offset) -> operation == Operation.WRITE && offset == block(10) ? Fate.FAILED : Fate.DONE);
        rig.settle();
        assertThat(rig.flushes).containsExactly(true);
        assertThat(rig.durable).containsExactly(1L, 2L, 3L, 6L, 7L, 8L);
        assertThat(rig.log().logStats().appendsFailed()).isEqualTo(2);
        device.completeAll();
        rig.openAndSettle(device, CONFIG);
        assertThat(rig.known.keySet()).containsExactly(1L, 2L, 3L, 6L, 7L, 8L);
    }

    @Test
    void givenABlockThatCannotBeWritten_whenAppended_thenItsBatchIsNotAndTheNextIsInAnotherRegion() {
        device.setPicker(
                (operation, offset) -> operation == Operation.WRITE && offset == block(11) ? Fate.FAILED : Fate.DONE);
        append(2);
        rig.settle();
        device.completeAll();
        append(1);
        rig.settle();
        assertThat(rig.known.keySet()).containsExactly(1L, 2L, 3L, 6L);
        assertThat(LogAddress.region(rig.knownBlock(6L).address())).isEqualTo(1);
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
    }

    @Test
    void givenASyncThatFails_whenFlushed_thenNothingIsPromisedAndTheLogReadsOn() {
        fail(Operation.SYNC, Fate.FAILED);
        rig.flush();
        append(1);
        rig.settle();
        assertThat(rig.flushes).containsExactly(false);
        assertThat(rig.log().state()).isEqualTo(TierState.READ_ONLY);
        assertThat(rig.log().cause()).contains("sync").contains("EIO");
        device.completeAll();
        assertThat(rig.flush()).isEqualTo(SubmitResult.REJECTED);
        assertThat(rig.append(1)).isZero();
        assertThat(rig.read(1)).isEqualTo(SubmitResult.ACCEPTED);
        rig.settle();
        assertThat(rig.outcomes).containsEntry(TierRead.Outcome.SUCCESS, 1);
    }

    @Test
    void givenNoSpace_whenAppended_thenTheLogReadsOn() {
        fail(Operation.WRITE, Fate.NO_SPACE);
        append(20);
        rig.flush();
        rig.settle();
        assertThat(rig.log().state()).isEqualTo(TierState.READ_ONLY);
        assertThat(rig.log().cause()).contains("no space");
        assertThat(rig.flushes).containsExactly(false);
        assertThat(rig.log().logStats().appendsFailed()).isEqualTo(20);
        assertThat(rig.read(1)).isEqualTo(SubmitResult.ACCEPTED);
        rig.settle();
        assertThat(rig.outcomes).containsEntry(TierRead.Outcome.SUCCESS, 1);
    }

    @Test
    void givenReadsOfTwoPiecesThatFail_whenReading_thenEachIsAMissUntilTheyAreTooMany() {
        rig.strict = false;
        fail(Operation.READ, Fate.FAILED);
        for (int i = 0; i < 3; i++) {
            rig.read(1);
        }
        rig.settle();
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        assertThat(rig.log().logStats().reads().ioErrors()).isEqualTo(3);
        rig.read(1);
        rig.settle();
        assertThat(rig.log().state()).isEqualTo(TierState.FAILED);
        assertThat(rig.read(1)).isEqualTo(SubmitResult.REJECTED);
        assertThat(rig.append(1)).isZero();
        assertThat(rig.log().cause()).contains("8 operations").contains("EIO");
    }

    @Test
    void givenFailuresThatAreNotInARow_whenReading_thenTheLogServesOn() {
        rig.strict = false;
        for (int i = 0; i < 20; i++) {
            fail(Operation.READ, i % 2 == 0 ? Fate.FAILED : Fate.DONE);
            rig.read(1);
            rig.settle();
        }
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        assertThat(rig.log().logStats().failures()).isEqualTo(20);
    }

    @Test
    void givenAnOperationThatHangs_whenTheTimeIsUp_thenTheLogHasFailedAndWhatWaitsIsTold() {
        device.setPicker(
                (operation, offset) -> operation == Operation.READ && offset == block(1) ? Fate.LATER : Fate.DONE);
        rig.read(1);
        for (int i = 0; i < 999; i++) {
            rig.tick();
        }
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        for (int i = 0; i < 5; i++) {
            rig.tick();
        }
        assertThat(rig.log().state()).isEqualTo(TierState.FAILED);
        assertThat(rig.log().cause()).contains("1000 ms");
        assertThat(rig.outcomes).isEmpty();
        device.completeAll();
        rig.settle();
        assertThat(rig.outcomes).containsEntry(TierRead.Outcome.SUCCESS, 1);
    }

    @Test
    void givenAnOperationOnItsWay_whenTheProcessStandsStill_thenThatTimeDoesNotCountAgainstIt() {
        device.setPicker(
                (operation, offset) -> operation == Operation.READ && offset == block(1) ? Fate.LATER : Fate.DONE);
        rig.read(1);
        rig.tick();
        for (int pauses = 0; pauses < 2; pauses++) {
            rig.freeze(TimeUnit.HOURS.toNanos(1));
            rig.tick();
        }
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
        device.completeAll();
        rig.settle();
        assertThat(rig.outcomes).containsEntry(TierRead.Outcome.SUCCESS, 1);
        assertThat(rig.log().state()).isEqualTo(TierState.SERVING);
    }

    @Test
    void givenATrailerThatCannotBeWritten_whenTriedThreeTimes_thenTheLogReadsOn() {
        long footers = GEOMETRY.regionPages() - 3L;
        device.setPicker((operation, offset) ->
                operation == Operation.WRITE && offset >= block((int) footers) && offset < block((int) footers + 3)
                        ? Fate.FAILED
                        : Fate.DONE);
        for (int i = 0; i < 100 && rig.log().state() == TierState.SERVING; i++) {
            rig.append(10_000);
            rig.settle();
        }
        assertThat(rig.log().state()).isEqualTo(TierState.READ_ONLY);
        assertThat(rig.log().cause()).contains("trailer of region 0");
        assertThat(rig.log().logStats().failures()).isEqualTo(3);
        device.completeAll();
        rig.read(1);
        rig.settle();
        rig.openAndSettle(device, CONFIG);
        assertThat(rig.known).hasSizeGreaterThan(55);
    }

    @Test
    void givenALogThatWasStopped_whenAsked_thenItRefusesAndWhatIsOnItsWayEnds() {
        append(2);
        rig.tick();
        append(2);
        rig.log().stop();
        rig.settle();
        assertThat(rig.log().state()).isEqualTo(TierState.STOPPED);
        assertThat(rig.known.keySet()).containsExactly(1L, 2L, 3L, 4L, 5L);
        assertThat(rig.log().logStats().appendsFailed()).isEqualTo(2);
        assertThat(rig.append(1)).isZero();
        assertThat(rig.read(1)).isEqualTo(SubmitResult.REJECTED);
    }
}

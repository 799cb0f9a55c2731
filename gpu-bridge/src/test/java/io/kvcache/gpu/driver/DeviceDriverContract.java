package io.kvcache.gpu.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// What every [DeviceDriver] must do. Runs unchanged on a real device.
public abstract class DeviceDriverContract {

    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(30);
    private static final int BYTES = 256 << 10;

    protected final DeviceUnderTest subject;
    protected final Arena arena = Arena.ofShared();
    protected DeviceDriver driver;
    private final List<DeviceSpan> slabs = new ArrayList<>();
    private final List<AutoCloseable> open = new ArrayList<>();
    private boolean closed;

    @SuppressWarnings("NullAway.Init") // opened before each test
    protected DeviceDriverContract(DeviceUnderTest subject) {
        this.subject = subject;
    }

    @BeforeEach
    void openDevice() {
        driver = subject.open();
    }

    @AfterEach
    void closeDevice() throws Exception {
        subject.release();
        if (!closed) {
            for (AutoCloseable each : open) {
                each.close();
            }
            slabs.forEach(driver::free);
            driver.close();
        }
        assertThat(subject.left()).isEmpty();
        arena.close();
    }

    protected final DeviceSpan slab(long bytes) {
        DeviceSpan span = driver.allocate(bytes);
        slabs.add(span);
        return span;
    }

    protected final DeviceStream stream() {
        DeviceStream stream = driver.openStream(Priority.HIGH);
        open.add(stream);
        return stream;
    }

    protected final DeviceEvent event() {
        DeviceEvent event = driver.openEvent();
        open.add(event);
        return event;
    }

    protected final MemorySegment memory(long bytes) {
        return arena.allocate(bytes, 4096);
    }

    protected final MemorySegment filled(long bytes, long seed) {
        MemorySegment memory = memory(bytes);
        new BlockContent(seed).fill(memory);
        return memory;
    }

    protected final void finish(DeviceStream stream) {
        DeviceEvent event = event();
        stream.record(event);
        assertThat(event.await(LONG_NANOS)).as("the stream gets there").isTrue();
    }

    protected static void assertRefused(DeviceError error, ThrowingCallable call) {
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(call)
                .satisfies(refused -> assertThat(refused.error()).isEqualTo(error))
                .withMessageContaining(error.name())
                .withMessageContaining(error.advice());
    }

    @Test
    void givenADevice_whenAsked_thenSaysWhatItIs() {
        assertThat(driver.info().name()).isNotBlank();
        assertThat(driver.info().driver()).isNotBlank();
        assertThat(driver.info().totalBytes()).isGreaterThanOrEqualTo(64 << 20);
        assertThat(driver.freeMemoryBytes())
                .isPositive()
                .isLessThanOrEqualTo(driver.info().totalBytes());
        assertThat(driver.resourceCounts()).isEqualTo(ResourceCounts.NONE);
    }

    @Test
    void givenBytes_whenCopiedThereWithinAndBack_thenTheSame() {
        DeviceSpan slab = slab(3 * BYTES);
        DeviceStream stream = stream();
        MemorySegment back = memory(BYTES);
        stream.copyToDevice(filled(BYTES, 1), slab.address());
        stream.copyWithinDevice(slab.address(), slab.address().plus(2 * BYTES), BYTES);
        stream.copyToHost(slab.address().plus(2 * BYTES), back);
        finish(stream);
        new BlockContent(1).requireEqual(back);
    }

    @Test
    void givenOddPlacesAndLengths_whenCopied_thenNeighboursStay() {
        DeviceSpan slab = slab(BYTES);
        DeviceStream stream = stream();
        stream.fill(slab, (byte) 0x5A);
        MemorySegment source = filled(BYTES, 2);
        stream.copyToDevice(source.asSlice(3, 4097), slab.address().plus(1001));
        MemorySegment back = memory(BYTES);
        stream.copyToHost(slab.address(), back);
        finish(stream);
        new BlockContent(2).requireEqual(3, back.asSlice(1001, 4097));
        assertThat(back.get(ValueLayout.JAVA_BYTE, 1000)).isEqualTo((byte) 0x5A);
        assertThat(back.get(ValueLayout.JAVA_BYTE, 1001 + 4097)).isEqualTo((byte) 0x5A);
    }

    @Test
    void givenRegisteredMemory_whenCopied_thenTheSameAndItsRegistrationCounts() {
        DeviceSpan slab = slab(BYTES);
        DeviceStream stream = stream();
        MemorySegment source = filled(BYTES, 3);
        driver.register(source);
        assertThat(driver.resourceCounts().registrations()).isEqualTo(1);
        MemorySegment back = memory(BYTES);
        stream.copyToDevice(source, slab.address());
        stream.copyToHost(slab.address(), back);
        finish(stream);
        new BlockContent(3).requireEqual(back);
        driver.unregister(source);
        assertThat(driver.resourceCounts().registrations()).isZero();
    }

    @Test
    void givenRegisteredMemory_whenRegisteredAgainOrStrangeMemoryUnregistered_thenRefusedByName() {
        MemorySegment memory = memory(BYTES);
        driver.register(memory);
        assertRefused(DeviceError.ALREADY_REGISTERED, () -> driver.register(memory));
        assertRefused(DeviceError.ALREADY_REGISTERED, () -> driver.register(memory.asSlice(4096, 4096)));
        driver.unregister(memory);
        assertRefused(DeviceError.NOT_REGISTERED, () -> driver.unregister(memory));
    }

    @Test
    void givenManyPieces_whenCopiedAsOneBatchEachWay_thenEachWhereItBelongs() {
        int pieces = 512;
        int each = 3 * 1024;
        DeviceSpan slab = slab(2L * pieces * each);
        DeviceStream stream = stream();
        MemorySegment source = filled((long) pieces * each, 4);
        MemorySegment back = memory((long) pieces * each);
        long border = 76 * 4096; // in the midst of a piece; some drivers register a page once
        driver.register(source.asSlice(0, border));
        driver.register(source.asSlice(border));
        List<Integer> order = shuffled(pieces, 5);
        CopyBatch there = CopyBatch.toDevice();
        CopyBatch within = CopyBatch.within();
        CopyBatch home = CopyBatch.toHost();
        for (int i = 0; i < pieces; i++) {
            DeviceAddress first = slab.address().plus((long) order.get(i) * each);
            DeviceAddress second = slab.address().plus((long) (pieces + i) * each);
            there.add(source.asSlice((long) i * each, each), first);
            within.add(first, second, each);
            home.add(back.asSlice((long) i * each, each), second);
        }
        stream.copy(there);
        stream.copy(within);
        stream.copy(home);
        finish(stream);
        new BlockContent(4).requireEqual(back);
        driver.unregister(source.asSlice(0, border));
        driver.unregister(source.asSlice(border));
    }

    @Test
    void givenAnEmptyBatch_whenCopied_thenNothingHappens() {
        DeviceStream stream = stream();
        stream.copy(CopyBatch.toDevice());
        finish(stream);
        long since = System.nanoTime();
        while (!stream.isIdle()) { // a moment after its last event was reached
            assertThat(System.nanoTime() - since).as("the stream is idle").isLessThan(LONG_NANOS);
            Thread.onSpinWait();
        }
    }

    private static List<Integer> shuffled(int count, long seed) {
        List<Integer> order = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            order.add(i);
        }
        Collections.shuffle(order, new Random(seed));
        return order;
    }

    @Test
    void givenAStreamThatIsHeld_whenACopyIsQueued_thenItIsNotDoneUntilItsEventIs() {
        assumeThat(subject.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        DeviceSpan slab = slab(BYTES);
        DeviceStream stream = stream();
        DeviceEvent event = event();
        MemorySegment back = memory(BYTES);
        assertThat(event.isReached()).as("never recorded").isTrue();
        subject.hold();
        stream.copyToDevice(filled(BYTES, 6), slab.address());
        stream.copyToHost(slab.address(), back);
        stream.record(event);
        assertThat(event.await(TimeUnit.MILLISECONDS.toNanos(20))).isFalse();
        assertThat(stream.isIdle()).isFalse();
        assertThat(back.mismatch(memory(BYTES))).as("nothing came yet").isEqualTo(-1);
        subject.release();
        assertThat(event.await(LONG_NANOS)).isTrue();
        new BlockContent(6).requireEqual(back);
    }

    @Test
    void givenHeldSource_whenItChangesBeforeTheEvent_thenTheCopyHasTheChange() {
        assumeThat(subject.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        DeviceSpan slab = slab(BYTES);
        DeviceStream stream = stream();
        MemorySegment source = filled(BYTES, 7);
        MemorySegment back = memory(BYTES);
        subject.hold();
        stream.copyToDevice(source, slab.address());
        new BlockContent(8).fill(source);
        subject.release();
        stream.copyToHost(slab.address(), back);
        finish(stream);
        new BlockContent(8).requireEqual(back);
    }

    @Test
    void givenTwoStreams_whenOneWaitsForAnEventOfTheOther_thenItsCopyComesAfter() {
        DeviceSpan slab = slab(BYTES);
        DeviceStream first = stream();
        DeviceStream second = stream();
        DeviceEvent event = event();
        MemorySegment back = memory(BYTES);
        for (int seed = 10; seed < 40; seed++) {
            first.copyToDevice(filled(BYTES, seed), slab.address());
            first.record(event);
            second.waitFor(event);
            second.copyToHost(slab.address(), back);
            finish(second);
            new BlockContent(seed).requireEqual(back);
        }
    }

    @Test
    void givenAnEventRecordedTwice_whenAsked_thenTheLastRecordCounts() {
        assumeThat(subject.canHold())
                .as("a driver whose copies can be held back")
                .isTrue();
        DeviceStream stream = stream();
        DeviceEvent event = event();
        stream.record(event);
        assertThat(event.await(LONG_NANOS)).isTrue();
        subject.hold();
        stream.record(event);
        assertThat(event.isReached()).isFalse();
        subject.release();
        assertThat(event.await(LONG_NANOS)).isTrue();
    }

    @Test
    void givenHeapReadOnlyOrConfinedMemory_whenCopied_thenRefusedWithAReason() {
        DeviceSpan slab = slab(BYTES);
        DeviceStream stream = stream();
        MemorySegment heap = MemorySegment.ofArray(new byte[64]);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> stream.copyToDevice(heap, slab.address()))
                .withMessageContaining("heap");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> stream.copyToHost(slab.address(), heap))
                .withMessageContaining("heap");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> CopyBatch.toDevice().add(heap, slab.address()))
                .withMessageContaining("heap");
        assertThatIllegalArgumentException().isThrownBy(() -> driver.register(heap));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> stream.copyToHost(slab.address(), memory(64).asReadOnly()))
                .withMessageContaining("read-only");
        try (Arena confined = Arena.ofConfined()) {
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> stream.copyToDevice(confined.allocate(64), slab.address()))
                    .withMessageContaining("one thread");
        }
    }

    @Test
    void givenASpanBeyondItsSlab_whenCopied_thenRefusedAndTheStreamGoesOn() {
        DeviceSpan slab = slab(BYTES);
        DeviceStream stream = stream();
        MemorySegment memory = filled(4096, 9);
        assertRefused(
                DeviceError.BAD_REQUEST,
                () -> stream.copyToDevice(memory, slab.address().plus(BYTES - 4095)));
        assertRefused(
                DeviceError.BAD_REQUEST, () -> stream.copyToHost(slab.address().plus(-1), memory));
        stream.copyToDevice(memory, slab.address().plus(BYTES - 4096));
        finish(stream);
    }

    @Test
    void givenMoreThanThereIs_whenAllocated_thenOutOfMemoryAndTheDeviceGoesOn() {
        assertRefused(
                DeviceError.OUT_OF_MEMORY, () -> driver.allocate(driver.info().totalBytes() + 1));
        assertThatIllegalArgumentException().isThrownBy(() -> driver.allocate(0));
        slab(BYTES);
        assertThat(driver.resourceCounts().slabBytes()).isEqualTo(BYTES);
    }

    @Test
    void givenASlab_whenFreed_thenItsMemoryIsFreeAgainAndASecondTimeIsRefused() {
        long before = driver.freeMemoryBytes();
        for (int i = 0; i < 6; i++) { // more than there is, unless each is given back
            DeviceSpan slab = driver.allocate(before / 4);
            driver.free(slab);
            assertRefused(DeviceError.BAD_REQUEST, () -> driver.free(slab));
        }
        assertThat(driver.freeMemoryBytes() == before || !subject.canHold()).isTrue(); // others use a real device too
    }

    @Test
    void givenAnotherThread_whenItTakesOver_thenItCopies() throws InterruptedException {
        DeviceSpan slab = slab(BYTES);
        DeviceStream stream = stream();
        MemorySegment back = memory(BYTES);
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread other = Thread.ofPlatform().unstarted(() -> {
            stream.copyToDevice(filled(BYTES, 10), slab.address());
            stream.copyToHost(slab.address(), back);
            driver.freeMemoryBytes();
        });
        other.setUncaughtExceptionHandler((_, cause) -> thrown.set(cause));
        other.start();
        other.join();
        assertThat(thrown.get()).isNull();
        finish(stream);
        new BlockContent(10).requireEqual(back);
    }

    @Test
    void givenAVirtualThread_whenItCalls_thenRefused() throws InterruptedException {
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        Thread waiter = Thread.ofVirtual().start(() -> {
            try {
                driver.allocate(1);
            } catch (IllegalStateException refused) {
                thrown.set(refused);
            }
        });
        waiter.join();
        assertThat(thrown.get()).hasMessageContaining("virtual");
    }

    @Test
    void givenAClosedStreamOrEvent_whenUsed_thenItSaysSo() {
        DeviceStream stream = driver.openStream(Priority.NORMAL);
        DeviceEvent event = driver.openEvent();
        stream.close();
        event.close();
        stream.close();
        event.close();
        assertThatIllegalStateException().isThrownBy(event::isReached);
        assertThatIllegalStateException().isThrownBy(stream::isIdle);
    }

    @Test
    void givenSomethingNotGivenBack_whenClosed_thenItIsNamedAndGivenBackAllTheSame() {
        driver.allocate(BYTES);
        driver.openStream(Priority.NORMAL);
        driver.openEvent();
        driver.register(memory(BYTES));
        closed = true;
        assertThatIllegalStateException()
                .isThrownBy(driver::close)
                .withMessageContaining("slabs=1")
                .withMessageContaining("registrations=1, streams=1, events=1");
        driver.close();
    }
}

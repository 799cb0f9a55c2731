package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceDriver.ResourceCounts;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import io.kvcache.gpu.kernel.GpuKernels;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// Two devices of one process, neither of which reaches the other's memory: used in turn by one
/// thread, with host memory that both know, and with nothing of one taken by the other.
final class TwoDevicesTest {

    private static final int BYTES = 1 << 20;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeCuda fakeCuda = FakeCuda.reset().withTwoDevices();
    private final Arena arena = Arena.ofShared();

    @AfterEach
    void close() {
        fakeCuda.release();
        assertThat(fakeCuda.left()).isEmpty();
        FakeCuda.reset();
        arena.close();
    }

    private MemorySegment content(long seed) {
        MemorySegment content = arena.allocate(BYTES, 4096);
        new BlockContent(seed).fill(content);
        return content;
    }

    /// A device with memory, and what is there.
    private final class TestDevice implements AutoCloseable {

        private final DeviceDriver driver;
        private final DeviceSpan slab;
        private final DeviceStream stream;
        private final DeviceEvent event;
        private boolean closed;

        TestDevice(int ordinal) {
            driver = fakeCuda.open(ordinal);
            slab = driver.allocate(BYTES);
            stream = driver.openStream(Priority.HIGH);
            event = driver.openEvent();
        }

        void write(MemorySegment content) {
            stream.copyToDevice(content, slab.address());
        }

        MemorySegment read() {
            MemorySegment back = arena.allocate(BYTES, 4096);
            stream.copyToHost(slab.address(), back);
            finish();
            return back;
        }

        void finish() {
            stream.record(event);
            assertThat(event.await(LONG_NANOS)).isTrue();
        }

        @Override
        public void close() {
            end();
        }

        void end() {
            if (closed) {
                return;
            }
            closed = true;
            event.close();
            stream.close();
            driver.free(slab);
            assertThat(driver.resourceCounts()).isEqualTo(ResourceCounts.NONE);
            driver.close();
        }
    }

    private static void refused(ThrowingCallable call, DeviceError... with) {
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(call)
                .satisfies(why -> assertThat(why.error()).isIn((Object[]) with));
    }

    @Test
    void givenOneThread_whenItUsesBothInTurn_thenEachHasItsOwnBytesAndMemory() {
        try (TestDevice first = new TestDevice(0);
                TestDevice second = new TestDevice(1)) {
            assertThat(first.driver.info().uuid())
                    .isNotEqualTo(second.driver.info().uuid());
            long free = second.driver.freeMemoryBytes();
            DeviceSpan more = first.driver.allocate(BYTES);
            assertThat(second.driver.freeMemoryBytes()).as("of the other").isEqualTo(free);
            first.driver.free(more);
            first.write(content(1));
            second.write(content(2));
            new BlockContent(1).requireEqual(first.read());
            new BlockContent(2).requireEqual(second.read());
        }
    }

    /// The first takes all of its context along, while the second goes on.
    @Test
    void givenOneThatCloses_whenTheOtherGoesOn_thenItsBytesAreThere() {
        try (TestDevice first = new TestDevice(0);
                TestDevice second = new TestDevice(1)) {
            second.write(content(3));
            first.end();
            new BlockContent(3).requireEqual(second.read());
        }
    }

    @Test
    void givenThingsOfOne_whenTheOtherIsGivenThem_thenItRefusesEachAndGoesOn() {
        try (TestDevice first = new TestDevice(0);
                TestDevice second = new TestDevice(1);
                GpuKernels kernels = GpuKernels.load(first.driver, 1)) {
            DeviceError bad = DeviceError.BAD_REQUEST;
            refused(() -> second.driver.free(first.slab), bad);
            refused(() -> second.stream.copyToDevice(content(4), first.slab.address()), bad);
            refused(() -> second.stream.copyToHost(first.slab.address(), content(4)), bad);
            refused(() -> second.stream.fill(first.slab, (byte) 1), bad);
            refused(() -> second.stream.copyWithinDevice(first.slab.address(), second.slab.address(), BYTES), bad);
            refused(() -> second.stream.copy(batchTo(first.slab)), bad);
            refused(() -> second.stream.waitFor(first.event), bad);
            refused(() -> second.stream.record(first.event), bad);
            refused(() -> second.driver.ipc().exportToken(first.slab), bad);
            refused(
                    () -> kernels.toFp8(
                            second.stream,
                            second.slab.slice(0, 256),
                            128,
                            second.slab.slice(512, 4),
                            second.slab.slice(1024, 128)),
                    bad);
            second.write(content(5));
            new BlockContent(5).requireEqual(second.read());
        }
    }

    private CopyBatch batchTo(DeviceSpan slab) {
        CopyBatch batch = CopyBatch.toDevice();
        MemorySegment content = content(6);
        batch.add(content.asSlice(0, 4096), slab.address());
        batch.add(content.asSlice(8192, 4096), slab.address().plus(16_384));
        return batch;
    }

    /// There is no copy from one device to the other but by way of the host.
    @Test
    void givenBytesOnOne_whenBroughtToTheOtherThroughTheHost_thenTheyAreThere() {
        try (TestDevice first = new TestDevice(0);
                TestDevice second = new TestDevice(1)) {
            first.write(content(7));
            MemorySegment between = first.read();
            second.write(between);
            new BlockContent(7).requireEqual(second.read());
        }
    }

    /// By a descriptor, as an engine might tell of memory on the wrong device: that is no reason to
    /// give the device up.
    @Test
    void givenPagesOfOne_whenMappedByTheOther_thenRefusedAsOutOfReachAndNothingIsLeft() {
        assumeThat(fakeCuda.canHold()).as("devices without a way to each other").isTrue();
        try (TestDevice first = new TestDevice(0);
                TestDevice second = new TestDevice(1)) {
            VirtualMemory theirs = first.driver.virtualMemory();
            VirtualMemory ours = second.driver.virtualMemory();
            PhysicalPages pages = theirs.createShared(theirs.pageBytes());
            PhysicalPages opened = ours.open(theirs.exportDescriptor(pages), ours.pageBytes());
            DeviceSpan range = ours.reserve(ours.pageBytes());
            refused(() -> ours.map(range.address(), opened), DeviceError.NOT_REACHABLE);
            ours.release(opened);
            ours.unreserve(range);
            theirs.release(pages);
            second.write(content(8));
            new BlockContent(8).requireEqual(second.read());
        }
    }

    /// A place that a kernel is told of, nobody looks at before the device does.
    @Test
    void givenAPlaceOfOne_whenAKernelOfTheOtherGoesThere_thenThatDeviceIsOfNoUseAndTheFirstGoesOn() {
        assumeThat(fakeCuda.canHold()).as("devices without a way to each other").isTrue();
        TestDevice first = new TestDevice(0);
        DeviceDriver second = fakeCuda.open(1);
        DeviceSpan slab = second.allocate(BYTES);
        DeviceStream stream = second.openStream(Priority.NORMAL);
        DeviceEvent event = second.openEvent();
        GpuKernels kernels = GpuKernels.load(second, 1);
        refused(
                () -> {
                    kernels.ropeShift(stream, first.slab, 128, slab.slice(0, 512), 64, true);
                    stream.record(event);
                    event.await(LONG_NANOS);
                },
                DeviceError.ILLEGAL_ACCESS);
        FaultInjection.close(second);
        first.write(content(9));
        new BlockContent(9).requireEqual(first.read());
        first.end();
    }

    @Test
    void givenHostMemoryOfBoth_whenEitherRegistersIt_thenOnceForBothUntilTheLastHasLetGo() {
        MemorySegment host = content(10);
        for (boolean ownerFirst : new boolean[] {false, true}) {
            FakeCuda.reset().withTwoDevices();
            try (TestDevice first = new TestDevice(0);
                    TestDevice second = new TestDevice(1)) {
                first.driver.register(host);
                second.driver.register(host);
                if (fakeCuda.canHold()) {
                    assertThat(fakeCuda.calls("cuMemHostRegister_v2")).isEqualTo(1);
                    fakeCuda.hold(); // the copy is looked at anew when it is made
                }
                TestDevice goes = ownerFirst ? first : second;
                TestDevice stays = ownerFirst ? second : first;
                stays.write(host);
                goes.driver.unregister(host);
                if (fakeCuda.canHold()) {
                    assertThat(fakeCuda.calls("cuMemHostUnregister"))
                            .as("before the last")
                            .isZero();
                    fakeCuda.release();
                }
                goes.end();
                new BlockContent(10).requireEqual(stays.read());
                stays.driver.unregister(host);
            }
            assertThat(fakeCuda.left()).isEmpty();
        }
    }

    /// What a driver leaves registered, it lets go of when it closes, in whose context it may be.
    @Test
    void givenHostMemoryOfBothThatNobodyUnregisters_whenBothClose_thenNothingIsLeft() {
        MemorySegment host = content(11);
        for (int first = 0; first < 2; first++) {
            DeviceDriver one = fakeCuda.open(first);
            DeviceDriver other = fakeCuda.open(1 - first);
            one.register(host);
            other.register(host);
            FaultInjection.close(one);
            FaultInjection.close(other);
            assertThat(fakeCuda.left()).isEmpty();
        }
    }

    /// The last one ends the registration in the other device's context, and the way back is
    /// refused: that is no reason to go on there.
    @Test
    void givenNoWayBackFromTheOthersContext_whenTheLastUnregisters_thenItGoesOnInItsOwn() {
        FaultInjection.assumePossible(fakeCuda);
        MemorySegment host = content(13);
        try (TestDevice first = new TestDevice(0);
                TestDevice second = new TestDevice(1)) {
            first.driver.register(host);
            second.driver.register(host);
            first.driver.unregister(host);
            first.end();
            second.write(host);
            second.finish();
            fakeCuda.failCall("cuCtxSetCurrent", 2, 999);
            second.driver.unregister(host);
            assertThat(fakeCuda.injectedAt()).isEqualTo("cuCtxSetCurrent");
            second.driver.free(second.driver.allocate(BYTES));
            new BlockContent(13).requireEqual(second.read());
        }
    }

    /// Every call of the driver fails once, each in turn, while a registration outlives the device
    /// that it was made by.
    @Test
    void givenAFaultAtEachCallInTurn_whenARegistrationIsHandedOn_thenNothingIsLeftOfEither() {
        FaultInjection.assumePossible(fakeCuda);
        MemorySegment host = content(12);
        int faults = 0;
        while (true) {
            fakeCuda.failCall("", faults + 1, 999);
            long before = fakeCuda.injected();
            handOn(host);
            fakeCuda.failCall("", 0, 0);
            assertThat(fakeCuda.left())
                    .as("after call %d failed, %s", faults + 1, fakeCuda.injectedAt())
                    .isEmpty();
            if (fakeCuda.injected() == before) {
                break;
            }
            faults++;
        }
        assertThat(faults).isGreaterThan(10);
        System.out.printf("registration of two devices faults injected: %d calls answered 999%n", faults);
    }

    private void handOn(MemorySegment host) {
        DeviceDriver[] drivers = new DeviceDriver[2];
        try {
            for (int i = 0; i < 2; i++) {
                drivers[i] = fakeCuda.open(i);
                drivers[i].register(host);
            }
            drivers[0].unregister(host);
        } catch (DeviceException refused) {
            assertThat(refused).hasMessageContaining("cu");
        }
        for (DeviceDriver driver : drivers) {
            if (driver != null) {
                FaultInjection.close(driver);
            }
        }
    }
}

package io.kvcache.gpu.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Every call of the driver fails once, each in turn, while memory is shared with another process,
/// by tokens and by descriptors, and while two drivers have the same host memory registered.
@Tag("slow")
final class CudaIpcFaultsTest {

    private static final int BYTES = 300_000;
    private static final int MIN_CALLS = 20;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final LeakCheckingDrivers drivers = new LeakCheckingDrivers(fakeCuda);
    private final Arena arena = Arena.ofShared();

    @AfterEach
    void close() {
        FakeCuda.reset();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }

    private MemorySegment content(int seed, long bytes) {
        MemorySegment content = arena.allocate(bytes, 4096);
        new BlockContent(seed).fill(content);
        return content;
    }

    private static void await(DeviceEvent event) {
        assertThat(event.await(LONG_NANOS)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 46, 205, 999})
    void givenAFaultAtEachCallInTurn_whenSharingByTokens_thenNeverAWrongByteNorALeak(int code) throws Exception {
        FaultInjection.assumePossible(fakeCuda);
        try (IpcExporterProcess peer = new IpcExporterProcess(BYTES)) {
            MemorySegment back = arena.allocate(BYTES, 4096);
            FaultInjection.injectWithin(fakeCuda, "sharing by tokens", code, MIN_CALLS, (driver, faultRun) -> {
                faultRun.begin();
                try (TestResources testResources = new TestResources(faultRun)) {
                    byTokens(driver, peer, content(faultRun.failingCall(), BYTES), back, testResources);
                    new BlockContent(faultRun.failingCall()).requireEqual(back);
                    return true;
                } catch (DeviceException refused) {
                    faultRun.expectFatal(refused);
                    return false;
                }
            });
        }
    }

    private static void byTokens(
            DeviceDriver driver,
            IpcExporterProcess peer,
            MemorySegment content,
            MemorySegment back,
            TestResources testResources) {
        DeviceIpc sharing = driver.ipc();
        DeviceStream stream = testResources.as(driver.openStream(Priority.NORMAL), DeviceStream::close);
        DeviceSpan theirs = testResources.as(sharing.open(peer.memory()), sharing::close);
        assertThat(theirs.bytes()).isGreaterThanOrEqualTo(BYTES);
        DeviceEvent filled = testResources.as(sharing.openEvent(peer.event()), DeviceEvent::close);
        DeviceEvent mine = testResources.as(sharing.createSharedEvent(), DeviceEvent::close);
        DeviceSpan slab = testResources.as(driver.allocate(BYTES), driver::free);
        assertThat(sharing.exportToken(slab)).hasSize(DeviceIpc.TOKEN_BYTES);
        assertThat(sharing.exportToken(mine)).hasSize(DeviceIpc.TOKEN_BYTES);
        stream.waitFor(filled);
        stream.copyToDevice(content, theirs.address());
        stream.copyWithinDevice(theirs.address(), slab.address(), BYTES);
        stream.copyToHost(slab.address(), back);
        stream.record(mine);
        await(mine);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 46, 999})
    void givenAFaultAtEachCallInTurn_whenSharingByDescriptors_thenNeverAWrongByteNorALeak(int code) throws Exception {
        MemorySegment back = arena.allocate(BYTES, 4096);
        long before = OpenFileDescriptors.open();
        FaultInjection.injectWithin(fakeCuda, "sharing by descriptors", code, MIN_CALLS, (driver, faultRun) -> {
            faultRun.begin();
            try (TestResources testResources = new TestResources(faultRun)) {
                byDescriptor(driver, content(faultRun.failingCall(), BYTES), back, testResources);
                new BlockContent(faultRun.failingCall()).requireEqual(back);
                return true;
            } catch (DeviceException refused) {
                faultRun.expectFatal(refused);
                return false;
            }
        });
        FakeCuda.reset();
        assertThat(OpenFileDescriptors.open()).isLessThan(before + MIN_CALLS);
    }

    /// The same memory, mapped where it was created and where its descriptor came to.
    private static void byDescriptor(
            DeviceDriver driver, MemorySegment content, MemorySegment back, TestResources testResources) {
        VirtualMemory virtual = driver.virtualMemory();
        long page = virtual.pageBytes();
        DeviceStream stream = testResources.as(driver.openStream(Priority.NORMAL), DeviceStream::close);
        DeviceEvent event = testResources.as(driver.openEvent(), DeviceEvent::close);
        PhysicalPages pages = testResources.as(virtual.createShared(page), virtual::release);
        PhysicalPages again;
        int descriptor = virtual.exportDescriptor(pages);
        try {
            again = testResources.as(virtual.open(descriptor, page), virtual::release);
        } finally {
            OpenFileDescriptors.close(descriptor);
        }
        DeviceSpan here = testResources.as(virtual.reserve(page), virtual::unreserve);
        DeviceSpan there = testResources.as(virtual.reserve(page), virtual::unreserve);
        virtual.map(here.address(), pages);
        testResources.as(pages, mapped -> virtual.unmap(here.address(), mapped));
        virtual.map(there.address(), again);
        testResources.as(again, mapped -> virtual.unmap(there.address(), mapped));
        stream.copyToDevice(content, here.address());
        stream.copyToHost(there.address(), back);
        stream.record(event);
        await(event);
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 46, 304, 712, 999})
    void givenAFaultAtEachCallInTurn_whenTwoDriversRegister_thenNeverAWrongByteNorALeak(int code) throws Exception {
        MemorySegment back = arena.allocate(BYTES, 4096);
        FaultInjection.inject(fakeCuda, "registration", code, MIN_CALLS, (nth, begin) -> {
            begin.run();
            MemorySegment content = content(nth, BYTES);
            try (OpenDriver one = new OpenDriver(drivers.open());
                    OpenDriver two = new OpenDriver(drivers.open())) {
                return registered(one.driver, two.driver, content, back, nth);
            } catch (DeviceException refused) {
                return false;
            } finally {
                drivers.requireNoLeaks();
            }
        });
    }

    /// The first lets go of the memory while the second goes on with it. Answers whether both had
    /// it.
    private static boolean registered(
            DeviceDriver one, DeviceDriver two, MemorySegment content, MemorySegment back, int nth) {
        try (TestRegistration second = new TestRegistration(two, content)) {
            boolean both;
            try (TestRegistration first = new TestRegistration(one, content)) {
                both = first.holds && second.holds;
                there(one, content, back);
                new BlockContent(nth).requireEqual(back);
            }
            back.fill((byte) 0);
            there(two, content, back);
            new BlockContent(nth).requireEqual(back);
            return both;
        }
    }

    /// Host memory as a driver has it registered, or did not want it.
    private static final class TestRegistration implements AutoCloseable {

        private final DeviceDriver driver;
        private final MemorySegment host;
        private final boolean holds;

        TestRegistration(DeviceDriver driver, MemorySegment host) {
            this.driver = driver;
            this.host = host;
            holds = registered();
        }

        private boolean registered() {
            try {
                driver.register(host);
                return true;
            } catch (DeviceException refused) {
                if (refused.error().isFatal()) {
                    throw refused;
                }
                return false;
            }
        }

        @Override
        public void close() {
            if (holds) {
                driver.unregister(host);
            }
        }
    }

    private static void there(DeviceDriver driver, MemorySegment content, MemorySegment back) {
        DeviceSpan slab = driver.allocate(BYTES);
        try (DeviceStream stream = driver.openStream(Priority.HIGH);
                DeviceEvent event = driver.openEvent()) {
            stream.copyToDevice(content, slab.address());
            stream.copyToHost(slab.address(), back);
            stream.record(event);
            await(event);
        } finally {
            driver.free(slab);
        }
    }

    /// What was taken of a driver, given back last first, whatever the driver has against it.
    private static final class TestResources implements AutoCloseable {

        private final Deque<Runnable> giveBack = new ArrayDeque<>();
        private final FaultInjection.FaultRun faultRun;

        TestResources(FaultInjection.FaultRun faultRun) {
            this.faultRun = faultRun;
        }

        <T> T as(T thing, Consumer<T> back) {
            giveBack.push(() -> back.accept(thing));
            return thing;
        }

        @Override
        public void close() {
            for (Runnable each : giveBack) {
                try {
                    each.run();
                } catch (DeviceException refused) {
                    faultRun.expectFatal(refused);
                }
            }
        }
    }

    /// A driver, closed with whatever it still has.
    private record OpenDriver(DeviceDriver driver) implements AutoCloseable {

        @Override
        public void close() {
            FaultInjection.close(driver);
        }
    }
}

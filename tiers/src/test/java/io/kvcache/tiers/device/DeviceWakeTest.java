package io.kvcache.tiers.device;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.FileDeviceOptions.IoBackendType;
import io.kvcache.tiers.device.IoRequest.IoRequestPool;
import io.kvcache.tiers.device.IoUring.IoUringSetup;
import io.kvcache.tiers.device.IoUringBackend.EventFd;
import io.kvcache.tiers.os.Libc;
import io.kvcache.tiers.os.Libc.LibcFunction;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Waits that nothing ends but a wake, as the operation on its way does not end. A lost wake hangs the test.
@EnabledOnOs(OS.LINUX)
class DeviceWakeTest {

    private static final int WAKES = 2000;

    private final Arena arena = Arena.ofShared();
    private final CountDownLatch released = new CountDownLatch(1);

    @TempDir
    private Path folder;

    @AfterEach
    void closeArena() {
        arena.close();
    }

    /// A read of an eventfd ends when something was written to it.
    @Test
    void givenUring_whenWokenAgainAndAgain_thenEachWaitEnds() throws Exception {
        assumeTrue(FileDeviceContractTest.hasUring(), "io_uring is refused here");
        Libc libc = Libc.system();
        int stuck = (int) libc.call(LibcFunction.EVENTFD, 0, 0);
        DeviceFile file = new DeviceFile(libc, folder, stuck, false);
        IoUring ioUring = new IoUring(libc, IoUringSetup.request(libc, 1 + EventFd.ENTRIES));
        IoBackend ioBackend = new IoUringBackend(ioUring, EventFd.open(libc), file, new IoRequestPool(1));
        AsyncDevice.CloseOptions closeOptions = new AsyncDevice.CloseOptions(Long.MAX_VALUE, file::close);
        try (BlockDevice device = new AsyncDevice("stuck", new SpanValidator(ALIGNMENT), ioBackend, closeOptions)) {
            requireEachWakeEndsAWait(device);
            libc.call(LibcFunction.EVENTFD_WRITE, stuck, 1L);
        }
    }

    @Test
    void givenThreads_whenWokenAgainAndAgain_thenEachWaitEnds() throws Exception {
        FileDeviceOptions options = FileDeviceOptions.of(folder.resolve("device"), ALIGNMENT)
                .withEngine(IoBackendType.THREADS)
                .withDirect(DirectIo.OFF);
        try (BlockDevice device = FileDevice.open(options, libcThatReadsWhenReleased())) {
            requireEachWakeEndsAWait(device);
            released.countDown();
        }
    }

    @Test
    void givenInterruptedOwner_whenWoken_thenTheWaitEndsAndItStaysInterrupted() throws IOException {
        FileDeviceOptions options = FileDeviceOptions.of(folder.resolve("device"), ALIGNMENT)
                .withEngine(IoBackendType.THREADS)
                .withDirect(DirectIo.OFF);
        try (BlockDevice device = FileDevice.open(options, libcThatReadsWhenReleased())) {
            device.read(arena.allocate(ALIGNMENT, ALIGNMENT), 0, 1);
            Thread.currentThread().interrupt();
            Thread.ofPlatform().start(device::wake);
            assertThat(device.await((_, _) -> {}, Long.MAX_VALUE)).isZero();
            assertThat(Thread.interrupted()).isTrue();
            released.countDown();
        }
    }

    private void requireEachWakeEndsAWait(BlockDevice device) throws InterruptedException {
        Semaphore turns = new Semaphore(0);
        Thread waker = Thread.ofPlatform().start(() -> {
            for (int i = 0; i < WAKES; i++) {
                turns.acquireUninterruptibly();
                device.wake();
            }
        });
        device.read(arena.allocate(ALIGNMENT, ALIGNMENT), 0, 1);
        for (int i = 0; i < WAKES; i++) {
            turns.release();
            assertThat(device.await((_, _) -> {}, Long.MAX_VALUE)).isZero();
        }
        waker.join();
        assertThat(device.inFlight()).isEqualTo(1);
    }

    @SuppressWarnings("restricted") // A C function with a known signature is what this double is.
    private Libc libcThatReadsWhenReleased() {
        Linker linker = Linker.nativeLinker();
        FunctionDescriptor signature = FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_LONG);
        MemorySegment pread = linker.upcallStub(readsWhenReleased(), signature, arena);
        return Libc.bind(name -> name.equals("pread")
                ? Optional.of(pread)
                : linker.defaultLookup().find(name));
    }

    private MethodHandle readsWhenReleased() {
        try {
            MethodType type = MethodType.methodType(long.class, int.class, long.class, long.class, long.class);
            return MethodHandles.lookup().bind(this, "read", type);
        } catch (ReflectiveOperationException impossible) {
            throw new LinkageError(impossible.getMessage(), impossible);
        }
    }

    @SuppressWarnings({"unused", "UnusedMethod"}) // Called by the stub.
    private long read(int descriptor, long address, long bytes, long offset) {
        try {
            released.await();
        } catch (InterruptedException impossible) {
            throw new AssertionError(impossible);
        }
        return bytes;
    }
}

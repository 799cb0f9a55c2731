package io.kvcache.tiers.device;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import io.kvcache.tiers.simulation.BlockingDeviceIo;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// How every [BlockDevice] answers bugs of its caller: by an exception that names the value and the range.
public abstract class BlockDeviceMisuseContract {

    private static final long SIZE = 1 << 20;
    private static final int DEPTH = 4;
    private static final long AWAIT_NANOS = 5_000_000_000L;

    private final Arena arena = Arena.ofShared();
    private final MemorySegment page = arena.allocate(ALIGNMENT, ALIGNMENT);
    private BlockDevice device = MemoryDevice.create(MemorySegment.ofArray(new byte[ALIGNMENT]), 1);
    private boolean closed;

    /// Opens a device.
    protected abstract BlockDevice open(long size, int depth) throws Exception;

    @BeforeEach
    void openDevice() throws Exception {
        device = open(SIZE, DEPTH);
    }

    @AfterEach
    void closeDevice() {
        if (!closed) {
            device.close();
        }
        arena.close();
    }

    @Test
    void givenMisalignedOffset_whenQueued_thenTheErrorNamesItAndTheRange() {
        refuses(
                () -> device.read(page, 512, 0),
                "offset of 4096 bytes must be a multiple of 4096 from 0 to 1044480, is 512");
        refuses(() -> device.write(page, ALIGNMENT + 1, 0), "is 4097");
        refuses(() -> device.discard(100, ALIGNMENT, 0), "is 100");
    }

    @Test
    void givenSpanBeyondTheEnd_whenQueued_thenTheErrorNamesItAndTheRange() {
        refuses(() -> device.read(page, SIZE, 0), "from 0 to 1044480, is 1048576");
        refuses(() -> device.write(page, -ALIGNMENT, 0), "is -4096");
        refuses(() -> device.discard(0, SIZE + ALIGNMENT, 0), "length must be a multiple of 4096 from 4096 to 1048576");
        refuses(() -> device.write(arena.allocate(SIZE + ALIGNMENT, ALIGNMENT), 0, 0), "is 1052672");
    }

    @Test
    void givenMisalignedLength_whenQueued_thenTheErrorNamesIt() {
        refuses(() -> device.read(page.asSlice(0, 512), 0, 0), "is 512");
        refuses(() -> device.write(page.asSlice(0, 0), 0, 0), "is 0");
        refuses(() -> device.discard(0, 5000, 0), "is 5000");
    }

    @Test
    void givenMisalignedAddress_whenQueued_thenTheErrorNamesIt() {
        MemorySegment shifted = arena.allocate(2 * ALIGNMENT, ALIGNMENT).asSlice(8, ALIGNMENT);
        refuses(() -> device.read(shifted, 0, 0), "0x%x".formatted(shifted.address()));
        refuses(() -> device.register(shifted), "0x%x".formatted(shifted.address()));
    }

    @Test
    void givenMemoryThatCannotBeUsed_whenQueued_thenTheErrorSaysWhy() {
        Arena ended = Arena.ofConfined();
        MemorySegment gone = ended.allocate(ALIGNMENT, ALIGNMENT);
        ended.close();
        MemorySegment heap = MemorySegment.ofArray(new byte[ALIGNMENT]);
        refuses(() -> device.read(page.asReadOnly(), 0, 0), "must be writable");
        refuses(() -> device.write(heap, 0, 0), "must be native memory");
        refuses(() -> device.register(heap), "must be native memory");
        refuses(() -> device.write(gone, 0, 0), "must be alive");
    }

    @Test
    void givenReadOnlySource_whenWritten_thenThatIsFine() {
        assertThat(new BlockingDeviceIo(device).write(page.asReadOnly(), 0)).isEqualTo(IoOutcome.DONE);
    }

    @Test
    void givenClosedDevice_whenUsed_thenEachCallRefuses() {
        device.close();
        closed = true;
        List<ThrowingCallable> calls = List.of(
                () -> device.read(page, 0, 0),
                () -> device.write(page, 0, 0),
                () -> device.sync(0),
                () -> device.discard(0, ALIGNMENT, 0),
                () -> device.submit(),
                () -> device.poll((_, _) -> {}),
                () -> device.await((_, _) -> {}, 1),
                () -> device.register(page),
                () -> device.close());
        for (ThrowingCallable call : calls) {
            assertThatIllegalStateException().isThrownBy(call).withMessageContaining("closed");
        }
    }

    @Test
    void givenOwner_whenAnotherThreadUsesTheDevice_thenItIsRefused() throws Exception {
        device.poll((_, _) -> {});
        assertThat(thrownBy(Thread.ofPlatform(), () -> device.sync(0)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("belongs to");
        assertThat(thrownBy(Thread.ofPlatform(), device::close)).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void givenVirtualThread_whenItUsesTheDevice_thenItIsRefused() throws Exception {
        assertThat(thrownBy(Thread.ofVirtual(), () -> device.sync(0)))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("platform thread");
    }

    @Test
    void givenSinkThatPollsOrCloses_whenPolled_thenItIsRefused() {
        device.read(page, 0, 0);
        CompletionSink nosy = (_, _) -> {
            assertThatIllegalStateException().isThrownBy(() -> device.poll((_, _) -> {}));
            assertThatIllegalStateException().isThrownBy(device::close);
        };
        while (device.inFlight() > 0) {
            device.await(nosy, AWAIT_NANOS);
        }
    }

    @Test
    void givenOperationOnItsWay_whenMemoryIsRegistered_thenItIsRefused() {
        device.read(page, 0, 0);
        assertThatIllegalStateException()
                .isThrownBy(() -> device.register(page))
                .withMessageContaining("nothing is on its way");
    }

    private void refuses(ThrowingCallable call, String message) {
        assertThatIllegalArgumentException().isThrownBy(call).withMessageContaining(message);
        assertThat(device.inFlight()).isZero();
    }

    private static @Nullable Throwable thrownBy(Thread.Builder builder, Runnable call) throws InterruptedException {
        AtomicReference<@Nullable Throwable> thrown = new AtomicReference<>();
        Thread thread = builder.unstarted(call);
        thread.setUncaughtExceptionHandler((_, failure) -> thrown.set(failure));
        thread.start();
        thread.join();
        return thrown.get();
    }
}

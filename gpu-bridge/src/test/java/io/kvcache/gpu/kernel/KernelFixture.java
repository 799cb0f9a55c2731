package io.kvcache.gpu.kernel;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/// A device with the kernels loaded, and memory on it that shows what was written beside its end.
final class KernelFixture implements AutoCloseable {

    static final byte POISON = (byte) 0xA7;
    private static final int MARGIN = 64;
    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(300);

    final FakeCuda fakeCuda = FakeCuda.reset();
    final Arena arena = Arena.ofShared();
    final DeviceDriver driver = fakeCuda.open();
    final DeviceStream stream = driver.openStream(Priority.NORMAL);
    final GpuKernels kernels = GpuKernels.load(driver, 3);
    private final DeviceEvent event = driver.openEvent();
    private final List<DeviceSpan> slabs = new ArrayList<>();

    /// Poisoned memory with a margin behind it.
    DeviceSpan target(long bytes) {
        DeviceSpan slab = driver.allocate(bytes + MARGIN);
        slabs.add(slab);
        stream.fill(slab, POISON);
        return slab.slice(0, bytes);
    }

    DeviceSpan source(MemorySegment content) {
        DeviceSpan span = target(content.byteSize());
        stream.copyToDevice(content, span.address());
        return span;
    }

    /// What is there, after a look at the margin.
    MemorySegment read(DeviceSpan span) {
        MemorySegment all = arena.allocate(span.bytes() + MARGIN, 8);
        stream.copyToHost(span.address(), all);
        finish();
        for (long at = span.bytes(); at < all.byteSize(); at++) {
            assertThat(all.get(JAVA_BYTE, at)).as("behind the end").isEqualTo(POISON);
        }
        return all.asSlice(0, span.bytes());
    }

    /// Waits for all that was given to the stream.
    void finish() {
        stream.record(event);
        assertThat(event.await(LONG_NANOS)).isTrue();
    }

    MemorySegment random(long bytes, long seed) {
        MemorySegment memory = arena.allocate(bytes, 8);
        new BlockContent(seed).fill(memory);
        return memory;
    }

    /// Values of many magnitudes, and of both signs.
    MemorySegment values(int count, long seed) {
        MemorySegment memory = arena.allocate(2L * count, 8);
        Random random = new Random(seed);
        for (int i = 0; i < count; i++) {
            double value = random.nextGaussian() * Math.scalb(1.0, random.nextInt(12) - 6);
            memory.setAtIndex(JAVA_SHORT, i, SmallFloatFormats.toBf16(value));
        }
        return memory;
    }

    /// Places of pieces in a span, in another order than they lie: piece i is the `order(i)`-th.
    DeviceSpan addressList(DeviceSpan of, long pieceBytes, int count, boolean backwards) {
        MemorySegment places = arena.allocate(8L * count, 8);
        for (int i = 0; i < count; i++) {
            long lies = backwards ? count - 1 - i : i;
            places.setAtIndex(JAVA_LONG, i, of.address().value() + lies * pieceBytes);
        }
        return source(places);
    }

    static double bf16(MemorySegment memory, long index) {
        return SmallFloatFormats.ofBf16(memory.getAtIndex(JAVA_SHORT, index));
    }

    @Override
    public void close() {
        kernels.close();
        stream.close();
        event.close();
        slabs.forEach(driver::free);
        driver.close();
        assertThat(fakeCuda.left()).isEmpty();
        arena.close();
    }
}

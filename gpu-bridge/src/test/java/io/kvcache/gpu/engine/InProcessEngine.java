package io.kvcache.gpu.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/// An engine of this process, whose memory is told of by a descriptor.
final class InProcessEngine implements AutoCloseable {

    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final Arena arena;
    private final DeviceDriver driver;
    private final DeviceStream stream;
    private final VirtualMemory virtual;
    private final PhysicalPages pages;
    private final DeviceSpan mapped;
    private final EngineClient client;
    private final int descriptor;

    /// @param path of the door
    InProcessEngine(FakeCuda fakeCuda, Path path, Arena arena) throws IOException {
        this(fakeCuda, path, arena, 1);
    }

    /// @param leastBytes of its memory
    InProcessEngine(FakeCuda fakeCuda, Path path, Arena arena, long leastBytes) throws IOException {
        this(fakeCuda.open(), path, arena, leastBytes);
    }

    /// @param device this engine's from here on
    /// @param leastBytes of its memory
    InProcessEngine(DeviceDriver device, Path path, Arena arena, long leastBytes) throws IOException {
        this.arena = arena;
        driver = device;
        stream = driver.openStream(Priority.NORMAL);
        virtual = driver.virtualMemory();
        long bytes = Math.ceilDiv(leastBytes, virtual.pageBytes()) * virtual.pageBytes();
        pages = virtual.createShared(bytes);
        mapped = virtual.reserve(bytes);
        descriptor = virtual.exportDescriptor(pages);
        virtual.map(mapped.address(), pages);
        client = new EngineClient(path);
    }

    EngineClient client() {
        return client;
    }

    PhysicalPages pages() {
        return pages;
    }

    int descriptor() {
        return descriptor;
    }

    /// Two regions of the same memory, a pool in them, and a chain of two blocks.
    void sendPoolAndChain() throws IOException {
        client.hello(driver.info().uuid());
        int first = client.region(descriptor, pages.bytes());
        int second = client.region(descriptor, pages.bytes());
        client.ask(EngineCodec.POOL, TwoLayerPool.encodeLayers(first, second));
        client.ask(EngineCodec.CHAIN, EngineClient.chain(0, 0, 0, TwoLayerPool.tokens(2)));
    }

    void fill() {
        stream.copyToDevice(TwoLayerPool.content(arena, 0), mapped.address().plus(TwoLayerPool.OFFSET));
        finish();
    }

    String uuid() {
        return driver.info().uuid();
    }

    /// Puts this at the beginning of its memory.
    void write(MemorySegment content) {
        stream.copyToDevice(content, mapped.address());
        finish();
    }

    /// What is at the beginning of its memory.
    MemorySegment read(long bytes) {
        MemorySegment found = arena.allocate(bytes, 8);
        stream.copyToHost(mapped.address(), found);
        finish();
        return found;
    }

    private void finish() {
        try (DeviceEvent done = driver.openEvent()) {
            stream.record(done);
            assertThat(done.await(LONG_NANOS)).isTrue();
        }
    }

    void expectRefused(int kind, ByteBuffer body, String why) {
        assertThatExceptionOfType(EngineClient.Refused.class)
                .isThrownBy(() -> client.ask(kind, body))
                .withMessageContaining(why);
    }

    @Override
    public void close() {
        client.close();
        UnixSocket.close(descriptor);
        virtual.unmap(mapped.address(), pages);
        virtual.release(pages);
        virtual.unreserve(mapped);
        stream.close();
        driver.close();
    }
}

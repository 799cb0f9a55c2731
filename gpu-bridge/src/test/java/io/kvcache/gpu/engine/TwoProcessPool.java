package io.kvcache.gpu.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.cuda.IpcExporterProcess;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;

/// A [TwoLayerPool] as its engine sees it: layer 0 is another process's memory, layer 1 is mapped here
/// and has a descriptor.
final class TwoProcessPool implements AutoCloseable {

    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final DeviceDriver driver;
    private final VirtualMemory virtual;
    private final DeviceSpan opened;
    private final PhysicalPages pages;
    private final DeviceSpan mapped;
    private final int descriptor;
    private final String uuid;

    TwoProcessPool(FakeCuda fakeCuda, IpcExporterProcess peer) {
        driver = fakeCuda.open();
        uuid = driver.info().uuid();
        virtual = driver.virtualMemory();
        opened = driver.ipc().open(peer.memory());
        pages = virtual.createShared(virtual.pageBytes());
        mapped = virtual.reserve(virtual.pageBytes());
        virtual.map(mapped.address(), pages);
        descriptor = virtual.exportDescriptor(pages);
    }

    String uuid() {
        return uuid;
    }

    int descriptor() {
        return descriptor;
    }

    long descriptorBytes() {
        return pages.bytes();
    }

    /// Puts this into both layers.
    void write(MemorySegment[] layers) {
        copy(stream -> {
            stream.copyToDevice(layers[0], opened.address().plus(TwoLayerPool.OFFSET));
            stream.copyToDevice(layers[1], mapped.address().plus(TwoLayerPool.OFFSET));
        });
    }

    /// Brings what both layers have.
    void read(MemorySegment[] layers) {
        copy(stream -> {
            stream.copyToHost(opened.address().plus(TwoLayerPool.OFFSET), layers[0]);
            stream.copyToHost(mapped.address().plus(TwoLayerPool.OFFSET), layers[1]);
        });
    }

    private interface LayerCopy {

        void by(DeviceStream stream);
    }

    private void copy(LayerCopy layerCopy) {
        try (DeviceStream stream = driver.openStream(Priority.NORMAL);
                DeviceEvent done = driver.openEvent()) {
            layerCopy.by(stream);
            stream.record(done);
            assertThat(done.await(LONG_NANOS)).isTrue();
        }
    }

    @Override
    public void close() {
        UnixSocket.close(descriptor);
        virtual.unmap(mapped.address(), pages);
        virtual.release(pages);
        virtual.unreserve(mapped);
        driver.ipc().close(opened);
        driver.close();
    }
}

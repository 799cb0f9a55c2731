package io.kvcache.gpu.engine;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;

import io.kvcache.gpu.cuda.FakeCuda;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.VirtualMemory;
import io.kvcache.gpu.driver.VirtualMemory.PhysicalPages;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/// The engine of [EngineIpcServerTest], in a process of its own: it stores two blocks and has them loaded to
/// other pages. Layer 0 is told of by a token, layer 1 by a descriptor. It speaks by lines.
final class EngineTestProcess {

    private static final long LONG_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final FakeCuda fakeCuda = FakeCuda.reset();
    private final DeviceDriver driver = fakeCuda.open();
    private final Arena arena = Arena.ofShared();
    private final DeviceStream stream = driver.openStream(Priority.NORMAL);
    private final DeviceIpc sharing = driver.ipc();

    private EngineTestProcess() {}

    /// Path of the door.
    public static void main(String... path) throws Exception {
        new EngineTestProcess().run(Path.of(path[0]));
    }

    private void run(Path path) throws Exception {
        VirtualMemory virtual = driver.virtualMemory();
        DeviceSpan slab = driver.allocate(TwoLayerPool.OFFSET + TwoLayerPool.LAYER_BYTES);
        PhysicalPages pages = virtual.createShared(virtual.pageBytes());
        DeviceSpan mapped = virtual.reserve(virtual.pageBytes());
        virtual.map(mapped.address(), pages);
        DeviceSpan[] layers = {
            slab.slice(TwoLayerPool.OFFSET, TwoLayerPool.LAYER_BYTES),
            mapped.slice(TwoLayerPool.OFFSET, TwoLayerPool.LAYER_BYTES)
        };
        DeviceEvent mine = sharing.createSharedEvent();
        try (EngineClient door = new EngineClient(path)) {
            ByteBuffer greeting = door.hello(driver.info().uuid());
            DeviceEvent loaded = opened(greeting, Long.BYTES);
            DeviceEvent stored = opened(greeting, Long.BYTES + DeviceIpc.TOKEN_BYTES);
            int descriptor = virtual.exportDescriptor(pages);
            int byToken = door.region(sharing.exportToken(slab));
            int byDescriptor = door.region(descriptor, pages.bytes());
            UnixSocket.close(descriptor);
            door.ask(EngineCodec.POOL, TwoLayerPool.encodeLayers(byToken, byDescriptor));
            int event = door.event(sharing.exportToken(mine));
            door.ask(EngineCodec.CHAIN, EngineClient.chain(5, 0, 0, TwoLayerPool.tokens(2)));
            store(door, event, layers, mine, stored);
            load(door, event, layers, mine, loaded);
            say(System.in.read() >= 0, "told to end");
        }
    }

    private DeviceEvent opened(ByteBuffer greeting, int at) {
        byte[] token = new byte[DeviceIpc.TOKEN_BYTES];
        greeting.position(EngineCodec.HEADER_BYTES + at);
        greeting.get(token);
        return sharing.openEvent(token);
    }

    private void store(EngineClient door, int event, DeviceSpan[] layers, DeviceEvent mine, DeviceEvent read)
            throws Exception {
        fakeCuda.hold();
        for (int layer = 0; layer < layers.length; layer++) {
            stream.copyToDevice(TwoLayerPool.content(arena, layer), layers[layer].address());
        }
        stream.record(mine);
        ByteBuffer stored = door.ask(EngineCodec.STORE, EngineClient.blocks(5, 0, 2, event, 3, 17, 0, 39));
        say(stored.getLong() == 2, "two blocks are stored");
        say(!read.await(TimeUnit.MILLISECONDS.toNanos(200)), "the store waits for our event");
        fakeCuda.release();
        say(read.await(LONG_NANOS), "the pages were read");
        say(door.seal(stored.getLong()) == 2, "two blocks are sealed");
    }

    private void load(EngineClient door, int event, DeviceSpan[] layers, DeviceEvent mine, DeviceEvent loaded)
            throws Exception {
        for (DeviceSpan layer : layers) {
            stream.fill(layer, (byte) 0x5A);
        }
        stream.record(mine);
        say(System.in.read() >= 0, "told to load");
        ByteBuffer coming = door.ask(EngineCodec.LOAD, EngineClient.blocks(5, 0, 2, event, 8, 9, 21, 20));
        say(coming.getLong() == 2, "two blocks are loaded");
        MemorySegment[] seen = new MemorySegment[layers.length];
        DeviceEvent looked = driver.openEvent();
        stream.waitFor(loaded);
        for (int layer = 0; layer < layers.length; layer++) {
            seen[layer] = arena.allocate(TwoLayerPool.LAYER_BYTES, 8);
            stream.copyToHost(layers[layer].address(), seen[layer]);
        }
        stream.record(looked);
        say(!looked.await(TimeUnit.MILLISECONDS.toNanos(200)), "our stream waits for the door's event");
        say(looked.await(LONG_NANOS), "loaded");
        MemorySegment[] first = {TwoLayerPool.content(arena, 0), TwoLayerPool.content(arena, 1)};
        boolean same = same(TwoLayerPool.block(arena, seen, 8, 9), TwoLayerPool.block(arena, first, 3, 17))
                && same(TwoLayerPool.block(arena, seen, 21, 20), TwoLayerPool.block(arena, first, 0, 39));
        say(same, "the blocks are in their pages");
        say(untouched(TwoLayerPool.block(arena, seen, 10, 19)), "other pages are as they were");
    }

    private static boolean same(MemorySegment one, MemorySegment other) {
        return one.mismatch(other) == -1;
    }

    private static boolean untouched(MemorySegment block) {
        for (long at = 0; at < block.byteSize(); at++) {
            if (block.get(JAVA_BYTE, at) != 0x5A) {
                return false;
            }
        }
        return true;
    }

    private static void say(boolean good, String what) {
        System.out.println((good ? "" : "not: ") + what);
    }
}

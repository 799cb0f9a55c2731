package io.kvcache.gpu.engine;

import static io.kvcache.gpu.engine.ConditionWait.awaitTrue;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.gpu.driver.DeviceDriver;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.file.Path;

/// An engine on a device, its pool with bytes of its own. Both layers lie at one place.
final class PooledEngine implements AutoCloseable {

    static final int[] STORED = {3, 17, 1, 38};
    static final int[] LOADED = {8, 10, 21, 19};

    private final Arena arena;
    private final InProcessEngine engine;
    private final MemorySegment content;

    /// @param device this engine's from here on
    PooledEngine(DeviceDriver device, Path door, Arena arena, int seed) throws IOException {
        this.arena = arena;
        content = arena.allocate(TwoLayerPool.OFFSET + TwoLayerPool.LAYER_BYTES, 8);
        engine = new InProcessEngine(device, door, arena, content.byteSize());
        new BlockContent(seed).fill(content);
        engine.write(content);
        engine.sendPoolAndChain();
    }

    InProcessEngine engine() {
        return engine;
    }

    EngineClient client() {
        return engine.client();
    }

    /// Stores both blocks, and returns the number of the store.
    long store() throws IOException {
        ByteBuffer stored = client().ask(EngineCodec.STORE, EngineClient.blocks(0, 0, 2, -1, STORED));
        assertThat(stored.getLong()).isEqualTo(2);
        return stored.getLong();
    }

    /// Loads both blocks to other pages.
    void load() throws IOException {
        assertThat(client().ask(EngineCodec.LOAD, EngineClient.blocks(0, 0, 2, -1, LOADED))
                        .getLong())
                .isEqualTo(2);
        expectLoaded();
    }

    /// Expects both blocks in the other pages.
    void expectLoaded() {
        for (int i = 0; i < LOADED.length; i++) {
            for (int side = 0; side < TwoLayerPool.SIDES; side++) {
                MemorySegment.copy(content, at(side, STORED[i]), content, at(side, LOADED[i]), TwoLayerPool.PIECE);
            }
        }
    }

    private static long at(int side, int page) {
        return TwoLayerPool.OFFSET + ((long) side * TwoLayerPool.PAGES + page) * TwoLayerPool.PIECE;
    }

    MemorySegment block(int index) {
        MemorySegment layer = content.asSlice(TwoLayerPool.OFFSET);
        return TwoLayerPool.block(arena, new MemorySegment[] {layer, layer}, STORED[2 * index], STORED[2 * index + 1]);
    }

    /// Ends the session, and checks every byte of the pool.
    void requireLoaded(EngineIpcServer door) {
        client().close(); // the door ends its copies then
        awaitTrue(() -> door.engineCount() == 0);
        assertThat(engine.read(content.byteSize()).mismatch(content)).isEqualTo(-1);
    }

    @Override
    public void close() {
        engine.close();
    }
}

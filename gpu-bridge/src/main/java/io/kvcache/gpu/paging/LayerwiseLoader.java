package io.kvcache.gpu.paging;

import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceStream;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/// Brings blocks from host memory into an engine's pages, all blocks of a layer together and the layers
/// in order, so that the engine computes with one layer while the next is on its way.
///
/// **Ownership.** Blocks stay there and untouched until the last layer is ready. The caller closes this then.
///
/// **Threads.** The driver's.
public final class LayerwiseLoader implements AutoCloseable {

    private final PagedLayout pages;
    private final DeviceStream stream;
    private final List<DeviceEvent> ready = new ArrayList<>();

    /// A block in host memory, and the pages that it goes to.
    ///
    /// @param bytes native memory of [PagedLayout#blockBytes]
    @SuppressWarnings("ArrayRecordComponent") // as engines have them
    public record HostBlock(MemorySegment bytes, int[] pages) {}

    /// For one pool; may be used again and again.
    public LayerwiseLoader(DeviceDriver driver, PagedLayout layout) {
        pages = layout;
        stream = driver.openStream(Priority.HIGH);
        try {
            for (int layer = 0; layer < layout.layers().size(); layer++) {
                ready.add(driver.openEvent());
            }
        } catch (DeviceException refused) {
            close();
            throw refused;
        }
    }

    /// Begins to bring the blocks in, once the event is reached: the engine has then done with what the
    /// pages hold now.
    ///
    /// @throws IllegalArgumentException for pages or blocks that do not fit the pool; then nothing was
    ///     begun
    public void start(List<HostBlock> blocks, DeviceEvent pagesFree) {
        List<CopyBatch> layers = new ArrayList<>();
        for (int layer = 0; layer < ready.size(); layer++) {
            CopyBatch batch = CopyBatch.toDevice();
            for (HostBlock block : blocks) {
                pages.addOnboard(block.bytes, block.pages, layer, batch);
            }
            layers.add(batch);
        }
        stream.waitFor(pagesFree);
        for (int layer = 0; layer < ready.size(); layer++) {
            stream.copy(layers.get(layer));
            stream.record(ready.get(layer));
        }
    }

    /// Reached once a layer of all blocks is there: for the engine's stream to wait for.
    public DeviceEvent layerReady(int layer) {
        return ready.get(layer);
    }

    @Override
    public void close() {
        ready.forEach(DeviceEvent::close);
        stream.close();
    }
}

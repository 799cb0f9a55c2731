package io.kvcache.gpu.engine;

import io.kvcache.core.BlockTable;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.engine.LoadSources.Pieces;
import io.kvcache.gpu.paging.PagedLayout;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Loads of one engine that go to its pages layer by layer, in steps with an event each: what has come of the first
/// layers is copied while the others are still on their way from a disk.
///
/// Blocks that do not come after all are left out from then on. What their pages have by then is of no use.
///
/// **Threads.** The session's.
final class LayeredLoads {

    private static final Logger LOG = System.getLogger(LayeredLoads.class.getName());

    /// Loads whose last step is not queued, each of which has blocks pinned.
    private static final int MAX_OPEN = 256;

    /// Loads whose last step was queued, which the engine may still ask for.
    private static final int MAX_ENDED = 1024;

    private final TransferQueue transferQueue;
    private final Map<Integer, LayeredLoad> open = new LinkedHashMap<>();
    private final Map<Integer, Progress> ended = new LinkedHashMap<>() {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Integer, Progress> eldest) {
            return size() > MAX_ENDED;
        }
    };
    private int nextLoad;

    /// The steps of a pool, each of as many layers but for the last.
    ///
    /// @param layouts of each step's layers
    /// @param layersAStep of all but the last
    /// @param copied reached when all is in its pages that was begun to be loaded of a step's layers
    /// @param hasLayers whether the pool's layers are those of the blocks, which may come one by one
    record PoolSteps(List<PagedLayout> layouts, int layersAStep, List<DeviceEvent> copied, boolean hasLayers) {

        /// @param layout of the whole pool
        static List<PagedLayout> layouts(PagedLayout layout, int layersAStep) {
            int layers = layout.layers().size();
            return IntStream.range(0, Math.ceilDiv(layers, layersAStep))
                    .mapToObj(step -> layout.ofLayers(step * layersAStep, Math.min(layers, (step + 1) * layersAStep)))
                    .toList();
        }

        int count() {
            return layouts.size();
        }

        /// Steps whose layers are there.
        int ready(LoadSources sources) {
            int layers = sources.readyLayers();
            if (layers == BlockTable.ALL_LAYERS) {
                return count();
            }
            return hasLayers ? Math.min(count(), layers / layersAStep) : 0;
        }
    }

    /// How far a load is.
    ///
    /// @param blocks leading ones that come or have come
    /// @param steps that are queued
    record Progress(int blocks, int steps) {}

    private static final class LayeredLoad {
        final PoolSteps steps;
        final LoadSources sources;
        final List<int[]> pages;
        final @Nullable DeviceEvent after;
        int queued;

        /// @param after the pages are free, or null when they are already
        LayeredLoad(PoolSteps steps, LoadSources sources, List<int[]> pages, @Nullable DeviceEvent after) {
            this.steps = steps;
            this.sources = sources;
            this.pages = pages;
            this.after = after;
        }

        Progress progress() {
            return new Progress(sources.blocks(), queued);
        }
    }

    LayeredLoads(TransferQueue transferQueue) {
        this.transferQueue = transferQueue;
    }

    boolean canBegin() {
        return open.size() < MAX_OPEN;
    }

    /// Begins a load, and queues the steps whose layers are there.
    ///
    /// @param sources of at least one block; this one's, whatever happens
    /// @param pages of each block, checked
    /// @param after the pages are free, or null when they are already
    /// @return its number
    int begin(PoolSteps steps, LoadSources sources, List<int[]> pages, @Nullable DeviceEvent after) {
        int number = nextLoad++;
        LayeredLoad load = new LayeredLoad(steps, sources, pages, after);
        open.put(number, load);
        advance(number, load);
        return number;
    }

    /// Waits until the given number of steps of a load is queued, or until no more blocks will arrive; the
    /// remaining steps are then queued without the missing blocks.
    ///
    /// @param steps 1 and up
    /// @throws IllegalArgumentException when there is no such load
    Progress await(int number, int steps, Duration timeout) {
        LayeredLoad load = open.get(number);
        if (load != null) {
            EngineCodec.require(steps >= 1 && steps <= load.steps.count(), "steps of load " + number, steps);
            if (load.queued < steps) {
                int layers = load.steps.hasLayers ? steps * load.steps.layersAStep : BlockTable.ALL_LAYERS;
                load.sources.awaitLayers(layers, timeout);
                advance(number, load);
            }
        }
        return progress(number);
    }

    /// @throws IllegalArgumentException when there is no such load
    Progress progress(int number) {
        LayeredLoad load = open.get(number);
        Progress known = load == null ? ended.get(number) : load.progress();
        if (known == null) {
            throw new IllegalArgumentException("load " + number + " was not begun, or ended long ago");
        }
        return known;
    }

    /// Queues what has come.
    void poll() {
        for (Map.Entry<Integer, LayeredLoad> each : List.copyOf(open.entrySet())) {
            try {
                advance(each.getKey(), each.getValue());
            } catch (IllegalArgumentException refused) {
                LOG.log(Level.WARNING, "a load of an engine ends before its first layers: {0}", refused.getMessage());
            }
        }
    }

    /// @throws IllegalArgumentException when the pages are not free in time; the load has ended then, without blocks
    private void advance(int number, LayeredLoad load) {
        int ready = load.steps.ready(load.sources);
        while (load.queued < ready) {
            boolean isLast = load.queued + 1 == load.steps.count();
            try {
                int blocks = queue(load, isLast);
                if (isLast) {
                    end(number, new Progress(blocks, load.steps.count()));
                }
            } catch (IllegalArgumentException refused) {
                end(number, new Progress(0, load.steps.count()));
                load.sources.close();
                throw refused;
            }
            load.queued++;
        }
    }

    private void end(int number, Progress last) {
        open.remove(number);
        ended.put(number, last);
    }

    /// Queues the next step, and returns of how many blocks.
    private int queue(LayeredLoad load, boolean isLast) {
        PagedLayout layout = load.steps.layouts.get(load.queued);
        long from = (long) load.queued * load.steps.layersAStep * layout.layerBytes();
        Pieces pieces = load.sources.pieces(layout, from, load.pages);
        DeviceEvent after = load.queued == 0 ? load.after : null;
        Runnable giveBack = isLast ? load.sources::close : () -> {};
        transferQueue.load(layout, pieces, after, load.steps.copied.get(load.queued), giveBack);
        return pieces.count();
    }

    /// Returns whether [#poll] may soon have something to queue.
    boolean hasPending() {
        return !open.isEmpty();
    }

    /// Gives back the blocks of loads that do not go on; nothing is on its way any more.
    void abandon() {
        open.values().forEach(load -> load.sources.close());
        open.clear();
    }

    /// Makes the events of a pool's steps.
    ///
    /// @throws DeviceException when the device has no more
    PoolSteps steps(PagedLayout layout, int count, boolean hasLayers) {
        int layers = layout.layers().size();
        int layersAStep = Math.ceilDiv(layers, count);
        List<PagedLayout> layouts = PoolSteps.layouts(layout, layersAStep);
        return new PoolSteps(layouts, layersAStep, transferQueue.openSharedEvents(layouts.size()), hasLayers);
    }
}

package io.kvcache.bench.lab;

import io.kvcache.bench.replay.ReplayRule;
import io.kvcache.bench.replay.TraceForest;
import io.kvcache.bench.store.TierFiles;
import io.kvcache.bench.store.TierReplay;
import io.kvcache.bench.store.TierReplayResult;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceRequest;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.tiers.TieredKvCache;
import java.io.IOException;
import java.nio.file.Path;

/// Replays a trace through the store with host memory and a disk, with small blocks of real bytes, and
/// through a model
/// of an engine with what was found in each tier.
public final class TierLaboratory {

    /// Block sizes that fill their slots; the smallest is taken for which whole slabs come near the
    /// wanted number.
    private static final int[] BLOCK_BYTES = {4 << 10, 16 << 10, 64 << 10};

    private static final double MOST_BEYOND = 1.2;

    private final Trace trace;
    private final TraceForest forest;
    private final Place place;
    private final EngineHardware hardware;

    /// What is replayed, and where the disk's files go.
    ///
    /// @param folder empty; is empty again after each run
    record Place(String trace, int distinctBlocks, Path folder) {}

    /// @param folder for the disk; must be empty
    public TierLaboratory(Trace trace, EngineHardware hardware, Path folder) {
        this.trace = trace;
        this.hardware = hardware;
        forest = new TraceForest(trace, ReplayRule.FULL_BLOCKS);
        place = new Place(trace.name(), forest.nodes(), folder);
    }

    /// Shares of the trace's distinct blocks, above 0 to 1.
    public record Shares(double host, double disk) {}

    /// Runs one policy with one rule of admission.
    ///
    /// @throws IOException when the folder is not empty
    public TierRow run(PolicyKind policy, AdmissionKind admission, Shares shares) throws IOException {
        int host = (int) Math.max(1, Math.round(shares.host * forest.nodes()));
        int blockBytes = blockBytes(host);
        long slab = SlabPool.SLAB_BYTES / blockBytes;
        int disk = (int) Math.max(1, Math.round(shares.disk * forest.nodes()));
        TierReplay.Settings settings = new TierReplay.Settings(
                policy,
                Math.toIntExact(Math.ceilDiv(host, slab) * slab),
                blockBytes,
                TierReplay.Settings.disk(place.folder, disk, blockBytes),
                admission);
        EngineModel engine = new EngineModel(hardware);
        TierFiles.requireEmpty(place.folder);
        try {
            TierReplayResult result =
                    TierReplay.run(forest, settings, TierReplay.Span.of(forest, 0), new Served(engine));
            return TierRow.of(place, settings, result, engine.report());
        } finally {
            TierFiles.remove(place.folder);
        }
    }

    private static int blockBytes(int hostBlocks) {
        for (int bytes : BLOCK_BYTES) {
            long slab = SlabPool.SLAB_BYTES / bytes;
            if (Math.ceilDiv(hostBlocks, slab) * slab <= MOST_BEYOND * hostBlocks) {
                return bytes;
            }
        }
        return BLOCK_BYTES[BLOCK_BYTES.length - 1];
    }

    private final class Served implements TierReplay.Watcher {

        private final EngineModel engine;

        Served(EngineModel engine) {
            this.engine = engine;
        }

        @Override
        public void found(int number, int hostBlocks, int blocks) {
            TraceRequest request = trace.requests().get(number);
            long most = request.inputTokens() - 1L;
            long host = Math.min(most, (long) hostBlocks * trace.blockTokens());
            long all = Math.min(most, (long) blocks * trace.blockTokens());
            engine.serve(
                    new EngineModel.Prompt(request.timestampMillis() / 1000.0, request.inputTokens()),
                    new EngineModel.Found(host, all - host));
        }

        @Override
        public void served(int request, TieredKvCache cache, long put) {}
    }
}

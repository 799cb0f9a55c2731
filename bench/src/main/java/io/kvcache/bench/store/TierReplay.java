package io.kvcache.bench.store;

import io.kvcache.bench.replay.HitCounter;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.DiskTierStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierStats;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockTable;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// Replays a trace through host memory and a disk: acquire, wait for what is on disk, verify every byte, then put
/// what was missing.
///
/// The loop is closed: the next request comes when all writes of the one before have ended. So what is measured
/// is which blocks the store keeps, not how fast the disk is.
///
/// **Ownership.** Opens its own store and closes it strictly: a table left open is an error.
public final class TierReplay {

    /// Longer than a disk takes for anything; whoever waits for so long reports an error.
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(60);

    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private final Settings settings;
    private final ReplayedChains chains;
    private final HitCounter all;
    private final HitCounter host;
    private final HitCounter onDevice;
    private final @Nullable CudaTier device;
    private long putBytes;
    private long blocksServed;
    private long wrongBlocks;
    private long notArrived;

    /// What to run.
    ///
    /// @param hostBlocks capacity of host memory, rounded up to whole slabs
    /// @param blockBytes real bytes of a block
    /// @param deviceBytes of a device in front of the disk, host memory that plays one; 0 for none
    public record Settings(
            PolicyKind policy,
            int hostBlocks,
            int blockBytes,
            DiskOptions disk,
            AdmissionKind admission,
            long deviceBytes) {

        /// Without a device.
        public Settings(PolicyKind policy, int hostBlocks, int blockBytes, DiskOptions disk, AdmissionKind admission) {
            this(policy, hostBlocks, blockBytes, disk, admission, 0);
        }

        /// A disk with room for so many blocks that are alive.
        public static DiskOptions disk(Path directory, long liveBlocks, int blockBytes) {
            return LiveBlocks.disk(directory, liveBlocks, blockBytes);
        }

        /// The same with another rule for what is written.
        public Settings withAdmission(AdmissionKind change) {
            return new Settings(policy, hostBlocks, blockBytes, disk, change, deviceBytes);
        }

        /// Blocks that may be alive on the disk.
        public int diskBlocks() {
            return Math.toIntExact(LiveBlocks.on(disk, blockBytes));
        }
    }

    /// Some of a trace's requests.
    ///
    /// @param first that is served
    /// @param end after the last
    /// @param counted first that counts as hit or miss
    public record Span(int first, int end, int counted) {

        /// All of them, the first few not counted.
        public static Span of(PrefixForest forest, int warmup) {
            return new Span(0, forest.requestCount(), warmup);
        }
    }

    private TierReplay(PrefixForest forest, Settings settings, int counted) {
        this.settings = settings;
        chains = new ReplayedChains(forest, settings.blockBytes());
        all = new HitCounter(forest, counted);
        host = new HitCounter(forest, counted);
        onDevice = new HitCounter(forest, counted);
        device = settings.deviceBytes == 0 ? null : device(settings.deviceBytes);
    }

    private static CudaTier device(long bytes) {
        return CudaTier.withDriver("host memory as a device", () -> FakeDeviceDriver.open(2 * bytes), bytes);
    }

    /// Hears of each request that was served, when all writes have ended.
    @FunctionalInterface
    public interface Watcher {

        /// A request was served.
        ///
        /// @param put bytes of blocks that were put so far
        void served(int request, TieredKvCache cache, long put);

        /// A request has found its leading blocks.
        ///
        /// @param hostBlocks of these, that were in host memory when it came
        /// @param blocks that came from host memory and disk
        default void found(int request, int hostBlocks, int blocks) {}
    }

    /// Serves requests, once.
    public static TierReplayResult run(PrefixForest forest, Settings settings, Span span, Watcher watcher) {
        return new TierReplay(forest, settings, span.counted).run(span, watcher);
    }

    private TierReplayResult run(Span span, Watcher watcher) {
        long start = System.nanoTime();
        TierReplayResult.Written written;
        try (TieredKvCache cache = open(settings, device)) {
            cache.register(chains.namespace());
            await("what the disk held is told", () -> !cache.isRecovering());
            for (int request = span.first; request < span.end; request++) {
                serve(cache, chains.chain(request), request, watcher);
                await("all is written", () -> settled(cache.offloadStats()));
                watcher.served(request, cache, putBytes);
            }
            cache.validate();
            written = written(cache);
        }
        return new TierReplayResult(
                all.totals(),
                host.totals().blockHits(),
                onDevice.totals().blockHits(),
                written,
                new TierReplayResult.Check(blocksServed, wrongBlocks, notArrived),
                (System.nanoTime() - start) / 1e9);
    }

    /// Opens a store of this kind.
    public static TieredKvCache open(Settings settings) {
        return open(settings, null);
    }

    private static TieredKvCache open(Settings settings, @Nullable CudaTier device) {
        long hostBytes = StoreReplay.Settings.hostBytes(settings.hostBlocks(), settings.blockBytes());
        TieredKvCacheBuilder builder = TieredKvCache.builder()
                .hostBytes(hostBytes)
                .records(Math.toIntExact(settings.diskBlocks() + 2 * hostBytes / settings.blockBytes()))
                .policy(settings.policy())
                .admission(settings.admission())
                .disk(settings.disk())
                .flushOnClose(Duration.ZERO)
                .checkSegments(false)
                .failOnLeak(true);
        return (device == null ? builder : builder.tier(device)).build();
    }

    /// An engine looks on the device first.
    private void askDevice(CudaTier present, BlockChain chain, int request) {
        try (DeviceBlockTable table = present.acquire(chain, 0)) {
            onDevice.onRequest(request, table.endBlock());
        }
    }

    private void serve(TieredKvCache cache, BlockChain chain, int request, Watcher watcher) {
        if (device != null) {
            askDevice(device, chain, request);
        }
        Match match = cache.match(chain);
        try (BlockTable table = cache.acquire(chain, 0, PATIENCE_NANOS)) {
            int ready = table.await(match.blocks(), PATIENCE_NANOS);
            notArrived += Math.max(0, match.blocks() - ready);
            host.onRequest(request, Math.min(match.hostBlocks(), ready));
            all.onRequest(request, ready);
            watcher.found(request, Math.min(match.hostBlocks(), ready), ready);
            blocksServed += ready;
            wrongBlocks += ReplayedChains.wrong(table, chain, ready);
            store(cache, chain, ready);
        }
    }

    private void store(TieredKvCache cache, BlockChain chain, int from) {
        for (int i = from; i < chain.length(); i++) {
            try (BlockWriter writer = cache.put(chain, i, 0, PATIENCE_NANOS)) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    return;
                }
                ReplayedChains.fill(chain, i, writer.segment());
                writer.seal();
                putBytes += settings.blockBytes();
            }
        }
    }

    private static boolean settled(DiskTierStats stats) {
        return stats.waitingBytes() == 0 && stats.writing() == 0;
    }

    /// A tier tells what it has done a moment later.
    private TierReplayResult.Written written(TieredKvCache cache) {
        long blocks = cache.offloadStats().written();
        await("the disk tells what it wrote", () -> tier(cache).blocksWritten() >= blocks);
        TierStats tier = tier(cache);
        return new TierReplayResult.Written(
                putBytes,
                tier.blockBytesWritten(),
                tier.allBytesWritten(),
                cache.offloadStats().evictedUnwritten());
    }

    private static TierStats tier(TieredKvCache cache) {
        return cache.diskStats().getFirst().tier();
    }

    private static void await(String what, BooleanSupplier reached) {
        long start = System.nanoTime();
        while (!reached.getAsBoolean()) {
            if (System.nanoTime() - start > PATIENCE_NANOS) {
                throw new IllegalStateException("a minute has passed, and it is not so that " + what);
            }
            LockSupport.parkNanos(PAUSE_NANOS);
        }
    }
}

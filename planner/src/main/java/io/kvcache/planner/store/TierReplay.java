package io.kvcache.planner.store;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierStats;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockTable;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.tiers.disk.DiskGeometry;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Replays a trace through host memory and a disk: acquire, wait for what is on disk, verify every byte,
/// then put what was missing.
///
/// The loop is closed: the next request comes when all writes of the one before have ended. So what is
/// measured is which blocks the store keeps, not how fast the disk is.
///
/// **Ownership.** Opens its own store and closes it strictly: a table left open is an error.
public final class TierReplay {

    /// Longer than any disk operation takes. A wait of this length ends with an error.
    private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private final Settings settings;
    private final TraceChains chains;
    private final HitCounter allHits;
    private final HitCounter hostHits;
    private final HitCounter deviceHits;
    private final @Nullable CudaTier device;
    private long putBytes;
    private long blocksServed;
    private long wrongBlocks;
    private long notArrived;

    /// The settings of a replay.
    ///
    /// @param hostBlocks capacity of host memory, rounded up to whole slabs
    /// @param blockBytes real bytes of a block
    /// @param deviceBytes of a device in front of the disk, host memory that plays one; 0 for none
    public record Settings(
            EvictionPolicyFactory policy,
            int hostBlocks,
            int blockBytes,
            DiskOptions disk,
            AdmissionKind admission,
            long deviceBytes) {

        /// Without a device.
        public Settings(
                EvictionPolicyFactory policy,
                int hostBlocks,
                int blockBytes,
                DiskOptions disk,
                AdmissionKind admission) {
            this(policy, hostBlocks, blockBytes, disk, admission, 0);
        }

        /// A disk with room for so many blocks that are alive.
        public static DiskOptions disk(Path directory, long liveBlocks, int blockBytes) {
            return LiveBlockCapacity.smallestDisk(directory, liveBlocks, blockBytes);
        }

        /// Blocks that may be alive on the disk.
        public int diskBlocks() {
            return Math.toIntExact(LiveBlockCapacity.capacityOf(disk, blockBytes));
        }
    }

    /// Some of a trace's requests.
    ///
    /// @param first that is served
    /// @param end after the last
    /// @param counted first that counts as hit or miss
    public record RequestRange(int first, int end, int counted) {

        /// All of them, the first few not counted.
        public static RequestRange of(PrefixForest forest, int warmup) {
            return new RequestRange(0, forest.requestCount(), warmup);
        }
    }

    private TierReplay(PrefixForest forest, Settings settings, int counted) {
        this.settings = settings;
        chains = new TraceChains(forest, settings.blockBytes());
        allHits = new HitCounter(forest, counted);
        hostHits = new HitCounter(forest, counted);
        deviceHits = new HitCounter(forest, counted);
        device = settings.deviceBytes == 0 ? null : device(settings.deviceBytes);
    }

    private static CudaTier device(long bytes) {
        return CudaTier.withDriver("host memory as a device", () -> FakeDeviceDriver.open(2 * bytes), bytes);
    }

    /// Hears of each request that was served, when all writes have ended.
    @FunctionalInterface
    public interface RequestListener {

        /// A request was served.
        ///
        /// @param put bytes of blocks that were put so far
        void onServed(int request, TieredKvCache cache, long put);

        /// A request has found its leading blocks.
        ///
        /// @param hostBlocks of these, that were in host memory when it came
        /// @param blocks that came from host memory and disk
        default void found(int request, int hostBlocks, int blocks) {}
    }

    /// Serves requests, once.
    public static TierReplayResult run(
            PrefixForest forest, Settings settings, RequestRange requestRange, RequestListener requestListener) {
        return new TierReplay(forest, settings, requestRange.counted).run(requestRange, requestListener);
    }

    private TierReplayResult run(RequestRange requestRange, RequestListener requestListener) {
        long start = System.nanoTime();
        TierReplayResult.DiskWrites diskWrites;
        try (TieredKvCache cache = open(settings, device)) {
            cache.register(chains.namespace());
            await("what the disk held is told", () -> !cache.isRecovering());
            for (int request = requestRange.first; request < requestRange.end; request++) {
                serve(cache, chains.chainOf(request), request, requestListener);
                await("all is written", () -> isSettled(cache.offloadStats()));
                requestListener.onServed(request, cache, putBytes);
            }
            cache.validate();
            diskWrites = writtenBytes(cache);
        }
        return new TierReplayResult(
                allHits.totals(),
                hostHits.totals().blockHits(),
                deviceHits.totals().blockHits(),
                diskWrites,
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
    private void acquireFromDevice(CudaTier present, BlockChain chain, int request) {
        try (DeviceBlockTable table = present.acquire(chain, 0)) {
            deviceHits.onRequest(request, table.endBlock());
        }
    }

    /// Returns how many leading blocks are in host memory, also where a device has them too.
    private static int inHostMemory(TieredKvCache cache, BlockChain chain, Match match) {
        if (match.deviceBlocks() == 0) {
            return match.hostBlocks();
        }
        try (BlockTable table = cache.acquireCopy(chain, 0, Duration.ZERO)) {
            return table.endBlock();
        }
    }

    private void serve(TieredKvCache cache, BlockChain chain, int request, RequestListener requestListener) {
        if (device != null) {
            acquireFromDevice(device, chain, request);
        }
        Match match = cache.match(chain);
        int here = inHostMemory(cache, chain, match);
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(TIMEOUT_NANOS))) {
            int ready = table.await(match.blocks(), Duration.ofNanos(TIMEOUT_NANOS));
            notArrived += Math.max(0, match.blocks() - ready);
            hostHits.onRequest(request, Math.min(here, ready));
            allHits.onRequest(request, ready);
            requestListener.found(request, Math.min(here, ready), ready);
            blocksServed += ready;
            wrongBlocks += TraceChains.countWrong(table, chain, ready);
            putMissing(cache, chain, ready);
        }
    }

    private void putMissing(TieredKvCache cache, BlockChain chain, int from) {
        for (int i = from; i < chain.length(); i++) {
            try (BlockWriter writer = cache.put(chain, i, 0, Duration.ofNanos(TIMEOUT_NANOS))) {
                if (writer.outcome() != PutOutcome.RESERVED) {
                    return;
                }
                TraceChains.fill(chain, i, writer.segment());
                writer.seal();
                putBytes += settings.blockBytes();
            }
        }
    }

    private static boolean isSettled(DiskTierStats stats) {
        return stats.waitingBytes() == 0 && stats.writing() == 0;
    }

    /// A tier tells what it has done a moment later.
    private TierReplayResult.DiskWrites writtenBytes(TieredKvCache cache) {
        long blocks = cache.offloadStats().written();
        await("the disk tells what it wrote", () -> tier(cache).blocksWritten() >= blocks);
        TierStats tier = tier(cache);
        return new TierReplayResult.DiskWrites(
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
            if (System.nanoTime() - start > TIMEOUT_NANOS) {
                throw new IllegalStateException("a minute has passed, and it is not so that " + what);
            }
            LockSupport.parkNanos(POLL_NANOS);
        }
    }

    /// A disk tier by the number of blocks that may be alive on it, all that is kept in reserve left out.
    static final class LiveBlockCapacity {

        /// The least change of a file that makes its regions larger by a page.
        private static final long STEP_BYTES = 200L * DiskGeometry.PAGE_BYTES;

        private LiveBlockCapacity() {}

        /// The smallest disk that has room for exactly so many.
        static DiskOptions smallestDisk(Path directory, long blocks, int blockBytes) {
            long wanted = blocks * slotBytes(blockBytes);
            DiskOptions disk = DiskOptions.of(directory, DiskGeometry.MIN_DEVICE_BYTES + wanted);
            while (disk.liveBytes() < wanted) {
                long missing = wanted - disk.liveBytes();
                disk = DiskOptions.of(directory, disk.bytes() + Math.ceilDiv(missing, STEP_BYTES) * STEP_BYTES);
            }
            return disk.withMaxLiveBytes(wanted);
        }

        /// How many have room on a disk.
        static long capacityOf(DiskOptions disk, int blockBytes) {
            return disk.liveBytes() / slotBytes(blockBytes);
        }

        private static long slotBytes(int blockBytes) {
            return Math.ceilDiv(blockBytes, DiskGeometry.PAGE_BYTES) * (long) DiskGeometry.PAGE_BYTES;
        }
    }

    /// The result of a replay through host memory and a disk.
    ///
    /// @param totals hits of both tiers, counted as in the metadata-only replay
    /// @param hostHits of these, in host memory when the request came
    /// @param deviceHits leading blocks that a device in front of the disk had, wherever else they were
    /// @param seconds of everything: making the contents, storing, writing, serving, verifying
    public record TierReplayResult(
            HitTotals totals, long hostHits, long deviceHits, DiskWrites written, Check check, double seconds) {

        /// The writes to the disk.
        ///
        /// @param putBytes of blocks that were put because no tier had them; a write-through store writes
        ///     as much
        /// @param blockBytes of those and of others, written once or more
        /// @param allBytes that the disk was given for that: tables, and blocks that were written again
        ///     to make room
        /// @param evictedUnwritten blocks that left host memory and were on no disk
        public record DiskWrites(long putBytes, long blockBytes, long allBytes, long evictedUnwritten) {

            /// The share of a write-through store's writes that were saved.
            public double savedShare() {
                return putBytes == 0 ? 0 : 1 - (double) blockBytes / putBytes;
            }

            /// Bytes that the disk was given, whatever for, for each byte of blocks that were put.
            public double bytesPerPutByte() {
                return putBytes == 0 ? 0 : (double) allBytes / putBytes;
            }

            /// Bytes that the disk was given for each byte of blocks.
            public double writeAmplification() {
                return blockBytes == 0 ? 0 : (double) allBytes / blockBytes;
            }
        }

        /// The result of the checks.
        ///
        /// @param blocksServed blocks whose bytes were compared, each byte
        /// @param wrongBlocks of those, different from what was put
        /// @param notArrived blocks that were on a disk and did not come
        public record Check(long blocksServed, long wrongBlocks, long notArrived) {

            public boolean passed() {
                return wrongBlocks == 0;
            }
        }

        /// Share of the blocks looked up that were in host memory.
        public double hostHitRatio() {
            return totals.blockAccesses() == 0 ? 0 : (double) hostHits / totals.blockAccesses();
        }

        /// Share of the blocks looked up that came from the disk.
        public double diskHitRatio() {
            return totals.blockHitRatio() - hostHitRatio();
        }

        /// Share of the blocks looked up that an engine found on the device.
        public double deviceHitRatio() {
            return totals.blockAccesses() == 0 ? 0 : (double) deviceHits / totals.blockAccesses();
        }
    }

    /// A run begins with nothing, and touches nothing of others.
    ///
    /// @throws IOException when the directory is there and has something in it
    public static void requireEmpty(Path directory) throws IOException {
        if (Files.isDirectory(directory)) {
            try (Stream<Path> content = Files.list(directory)) {
                if (content.findAny().isPresent()) {
                    throw new IOException(directory + " is not empty: name a directory that is, or is not there yet");
                }
            }
        }
    }

    /// Removes a tier and its directory.
    public static void deleteTier(Path directory) throws IOException {
        Files.deleteIfExists(directory.resolve("tier"));
        Files.deleteIfExists(directory.resolve("lock"));
        Files.deleteIfExists(directory);
    }

    /// Referenced here, as a logger without references is collected and loses its level.
    private static final Logger TIERS_LOG = Logger.getLogger("io.kvcache.tiers");

    /// Stops tiers from logging their file and their I/O path at each opening, in this JVM from now on.
    public static void silenceTiers() {
        TIERS_LOG.setLevel(Level.WARNING);
    }
}

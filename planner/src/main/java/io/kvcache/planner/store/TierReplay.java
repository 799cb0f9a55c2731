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
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockMap;
import io.kvcache.gpu.tier.DeviceGeometry;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.tiers.disk.DiskGeometry;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashSet;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.IntStream;
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

    /// The smallest device.
    private static final long MIN_DEVICE_BYTES = 1 << 20;

    /// The least change of a device that makes its regions larger by a page, where it has the fewest regions.
    private static final long DEVICE_STEP_BYTES = 16L * DiskGeometry.PAGE_BYTES;

    private static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private final Settings settings;
    private final TraceChains chains;
    private final HitCounter allHits;
    private final HitCounter hostHits;
    private final HitCounter deviceHits;
    private final @Nullable ReplayDevice device;
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

        /// Bytes of the smallest device on which these blocks may be alive.
        public static long deviceBytes(int blocks, int blockBytes) {
            long live = blocks * LiveBlockCapacity.slotBytes(blockBytes);
            long bytes = DeviceGeometry.of(MIN_DEVICE_BYTES).bytes();
            while (DeviceGeometry.of(bytes).aliveBytes() < live) {
                long missing = live - DeviceGeometry.of(bytes).aliveBytes();
                bytes += Math.ceilDiv(missing, DEVICE_STEP_BYTES) * DEVICE_STEP_BYTES;
            }
            return bytes;
        }

        /// Blocks that may be alive on that device: as many, or a few more.
        public static int deviceBlocks(int blocks, int blockBytes) {
            long live = DeviceGeometry.of(deviceBytes(blocks, blockBytes)).aliveBytes();
            return Math.toIntExact(live / LiveBlockCapacity.slotBytes(blockBytes));
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
        device = settings.deviceBytes == 0 ? null : new ReplayDevice(settings.deviceBytes, settings.blockBytes);
    }

    /// Hears of each request that was served, when all writes have ended.
    @FunctionalInterface
    public interface RequestListener {

        /// A request was served.
        ///
        /// @param put bytes of blocks that were put so far
        void onServed(int request, TieredKvCache cache, long put);

        /// A request has found its leading blocks.
        default void found(int request, BlocksFound found) {}
    }

    /// Leading blocks that a request has found, each counted where the engine took it from.
    ///
    /// @param device that the device had
    /// @param host that were in host memory when the request came
    /// @param disk that were read from the disk
    public record BlocksFound(int device, int host, int disk) {

        /// All of them.
        public int blocks() {
            return device + host + disk;
        }
    }

    /// Serves requests, once.
    public static TierReplayResult run(
            PrefixForest forest, Settings settings, RequestRange requestRange, RequestListener requestListener) {
        return new TierReplay(forest, settings, requestRange.counted).run(requestRange, requestListener);
    }

    private TierReplayResult run(RequestRange requestRange, RequestListener requestListener) {
        long start = System.nanoTime();
        TierReplayResult.DiskWrites diskWrites;
        try (ReplayDevice _ = device;
                TieredKvCache cache = open(settings, device)) {
            cache.register(chains.namespace());
            await("what the disk held is told", () -> !cache.isRecovering());
            for (int request = requestRange.first; request < requestRange.end; request++) {
                requestListener.found(request, serve(cache, chains.chainOf(request), request));
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

    private static TieredKvCache open(Settings settings, @Nullable ReplayDevice device) {
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
        return (device == null ? builder : builder.tier(device.tier)).build();
    }

    /// Serves a request as an engine on the device does: what the device has is taken from there, and where the
    /// rest is in host memory, the disk is not asked.
    private BlocksFound serve(TieredKvCache cache, BlockChain chain, int request) {
        Match match = cache.match(chain);
        try (DeviceBlockMap onDevice = device == null ? DeviceBlockMap.empty() : device.acquire(chain);
                BlockTable resident = cache.acquireCopy(chain, 0, Duration.ZERO)) {
            boolean needsDisk = endBehind(onDevice, chain, resident.endBlock()) < match.blocks();
            Duration timeout = needsDisk ? Duration.ofNanos(TIMEOUT_NANOS) : Duration.ZERO;
            try (BlockTable table = cache.acquire(chain, 0, timeout)) {
                int inTable = table.await(match.blocks(), Duration.ofNanos(TIMEOUT_NANOS));
                int ready = endBehind(onDevice, chain, inTable);
                notArrived += Math.max(0, match.blocks() - ready);
                int fromDevice = (int)
                        IntStream.range(0, ready).filter(onDevice::contains).count();
                int fromHost = (int) IntStream.range(0, Math.min(ready, resident.endBlock()))
                        .filter(index -> !onDevice.contains(index))
                        .count();
                deviceHits.onRequest(request, fromDevice);
                hostHits.onRequest(request, fromHost);
                allHits.onRequest(request, ready);
                blocksServed += ready;
                wrongBlocks += countWrong(chain, table, onDevice, ready);
                putMissing(cache, chain, ready);
                return new BlocksFound(fromDevice, fromHost, ready - fromDevice - fromHost);
            }
        }
    }

    /// Block after the last one that is here, when all before `end` are.
    private static int endBehind(DeviceBlockMap onDevice, BlockChain chain, int end) {
        int behind = end;
        while (behind < chain.length() && onDevice.contains(behind)) {
            behind++;
        }
        return behind;
    }

    private int countWrong(BlockChain chain, BlockTable table, DeviceBlockMap onDevice, int blocks) {
        int wrong = TraceChains.countWrong(table, chain, Math.min(blocks, table.readyEnd()));
        for (int index = 0; index < blocks; index++) {
            boolean isWrong = onDevice.contains(index)
                    && !TraceChains.matches(
                            chain, index, Objects.requireNonNull(device).read(onDevice, index));
            wrong += isWrong ? 1 : 0;
        }
        return wrong;
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

    /// Host memory that plays a device, and its engine's way of reading it.
    ///
    /// **Threads.** One.
    private static final class ReplayDevice implements AutoCloseable {

        private final CudaTier tier;
        private final FakeDeviceDriver engine;
        private final DeviceStream stream;
        private final MemorySegment copy;
        private final Set<DeviceSpan> adopted = new HashSet<>();

        ReplayDevice(long bytes, int blockBytes) {
            tier = CudaTier.withDriver("host memory as a device", () -> FakeDeviceDriver.open(2 * bytes), bytes);
            engine = FakeDeviceDriver.open(2 * bytes);
            stream = engine.openStream(DeviceDriver.Priority.NORMAL);
            copy = Arena.ofAuto().allocate(blockBytes);
        }

        /// Pins the blocks that the device has.
        DeviceBlockMap acquire(BlockChain chain) {
            return tier.acquireEach(chain, 0, chain.length());
        }

        /// Returns a block's bytes, which are valid until the next call.
        MemorySegment read(DeviceBlockMap blocks, int index) {
            blocks.memory().stream().filter(adopted::add).forEach(engine::adopt);
            stream.copyToHost(blocks.span(index).address(), copy);
            await("the device is read", stream::isIdle);
            return copy;
        }

        @Override
        public void close() {
            stream.close();
            engine.close();
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
    /// @param hostHits of these, in host memory when the request came, and not on the device
    /// @param deviceHits of these, that the engine took from the device, wherever else they were
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
            return totals.blockHitRatio() - hostHitRatio() - deviceHitRatio();
        }

        /// Share of the blocks looked up that the engine took from the device.
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

package io.kvcache.bench.disk;

import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.BlockDevice.CompletionSink;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.ForwardingDevice;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.SplittableRandom;

/// A file that opens as a full disk tier of any size, but takes only the space of its trailers: 64 bytes a block.
/// Its blocks cannot be read.
///
/// **Ownership.** Closing it deletes the file.
public final class SparseTierImage implements AutoCloseable {

    private static final long SEED = 1;
    private static final long WAIT_NANOS = 1_000_000;
    private static final int DEPTH = 64;

    /// Blocks of a chain, each the parent of the next.
    static final int CHAIN_BLOCKS = 512;

    private final Path file;
    private final long bytes;
    private final long blocks;

    private SparseTierImage(Path file, long bytes, long blocks) {
        this.file = file;
        this.bytes = bytes;
        this.blocks = blocks;
    }

    /// Makes a tier full of blocks.
    ///
    /// @param folder where the file is made
    /// @param bytes of the tier
    /// @param blockBytes of each block
    public static SparseTierImage create(Path folder, long bytes, int blockBytes) throws IOException {
        return create(folder, bytes, blockBytes, new MappedMemorySource(MemoryOptions.defaults()));
    }

    /// @param memory gives the log its memory, which is released again, whether filling succeeds or fails
    static SparseTierImage create(Path folder, long bytes, int blockBytes, HostMemorySource memory) throws IOException {
        DiskGeometry geometry = DiskGeometry.of(bytes);
        Path file = Files.createTempFile(folder, "kvcache-sparse", ".tier");
        SparseTierImage empty = new SparseTierImage(file, bytes, 0);
        try {
            try (RandomAccessFile sparse = new RandomAccessFile(file.toFile(), "rw")) {
                sparse.setLength(bytes);
            }
            try (BlockDevice device = new TrailerOnlyDevice(empty.openDevice(), geometry);
                    Arena arena = Arena.ofShared()) {
                return new SparseTierImage(file, bytes, fill(device, arena, blockBytes, memory));
            }
        } catch (RuntimeException | IOException failure) {
            empty.close();
            throw failure;
        }
    }

    /// Appends until only the regions are left that a log keeps free.
    private static long fill(BlockDevice device, Arena arena, int blockBytes, HostMemorySource memory) {
        CountingIndex index = new CountingIndex();
        DiskGeometry geometry = DiskGeometry.of(device.size());
        DiskLog.Resources resources = new DiskLog.Resources(device, () -> {}, memory);
        try (DiskLog log = new DiskLog("sparse tier", resources, DiskLogConfig.of(geometry, SEED), index)) {
            return fill(log, index, arena, blockBytes);
        }
    }

    private static long fill(DiskLog log, CountingIndex index, Arena arena, int blockBytes) {
        settle(log);
        List<MemorySegment> block = List.of(arena.allocate(blockBytes, DiskGeometry.PAGE_BYTES));
        SplittableRandom random = new SplittableRandom(SEED);
        TierBlock parent = new TierBlock(0, 0, 0, 0, 0, false, 0, blockBytes, 0, 0);
        long appended = 0;
        while (log.logStats().regions().free() > 3) {
            for (int i = 0; i < CHAIN_BLOCKS; i++) {
                TierBlock entry = child(parent, i, random);
                while (log.write(entry, block, 0) == SubmitResult.RETRY) {
                    log.tick(System.nanoTime(), 0);
                }
                parent = entry;
            }
            appended += CHAIN_BLOCKS;
        }
        settle(log);
        if (index.appended() != appended || log.state() != TierState.SERVING) {
            throw new IllegalStateException(index.appended() + " of " + appended + " appended: " + log.cause());
        }
        return appended;
    }

    private static TierBlock child(TierBlock parent, int depth, SplittableRandom random) {
        return new TierBlock(
                random.nextLong(),
                random.nextLong(),
                depth == 0 ? 0 : parent.keyHi(),
                depth == 0 ? 0 : parent.keyLo(),
                0,
                false,
                depth,
                parent.bytes(),
                0,
                0);
    }

    private static void settle(DiskLog log) {
        do {
            log.tick(System.nanoTime(), WAIT_NANOS);
        } while (!log.isIdle());
    }

    /// Blocks in it; those of the region that was open last cannot be found.
    public long blockCount() {
        return blocks;
    }

    /// Opens the device as it is.
    ///
    /// @throws UncheckedIOException when it cannot be opened
    public BlockDevice openDevice() {
        try {
            return FileDevice.open(
                    FileDeviceOptions.of(file, bytes).withDepth(DEPTH).withCreate(false));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @Override
    public void close() throws IOException {
        Files.deleteIfExists(file);
    }

    /// Knows how many entries it was told, and nothing else; so what is measured is the log.
    static final class CountingIndex implements TierListener {

        private static final Namespace NAMESPACE = Namespace.of("sparse", BlockShape.kv(1, 1, 64, 16, Dtype.BF16));

        private long told;
        private long appended;

        long recoveredCount() {
            return told;
        }

        long appended() {
            return appended;
        }

        @Override
        public Namespace namespace(int namespaceId) {
            return NAMESPACE;
        }

        @Override
        public int namespaceId(Namespace namespace) {
            return 0;
        }

        @Override
        public void onRecovered(TierBlock block, long place) {
            told++;
        }

        @Override
        public void onTombstone(long keyHi, long keyLo) {}

        @Override
        public void onRecoveryEnded() {}

        @Override
        public void onReclaim(ReclaimCandidates offer) {}

        @Override
        public void onMoved(TierBlock block, long from, long to) {}

        @Override
        public void onLost(TierBlock block, long place) {}

        @Override
        public void onWritten(long tag, long place) {
            appended++;
        }

        @Override
        public void onRead(long tag, TierRead.Outcome outcome) {}

        @Override
        public void onFlushed(long tag, boolean durable) {}
    }

    /// Writes superblocks and trailers to the device below and forgets everything else, so that a tier of any size
    /// costs no more than its trailers.
    private static final class TrailerOnlyDevice extends ForwardingDevice {

        private static final int ROWS_PER_PAGE = 64;

        private final DiskGeometry geometry;
        private final Queue<Long> discardedTags = new ArrayDeque<>();

        TrailerOnlyDevice(BlockDevice below, DiskGeometry geometry) {
            super(below);
            this.geometry = geometry;
        }

        /// The longest table has a row of 64 bytes for each page of its region, and behind it is the footer.
        private boolean isMetadata(long offset) {
            long inRegions = offset - geometry.regionOffset(0);
            long trailerBytes = (geometry.regionPages() / ROWS_PER_PAGE + 2L) * DiskGeometry.PAGE_BYTES;
            return inRegions < 0 || inRegions % geometry.regionBytes() >= geometry.regionBytes() - trailerBytes;
        }

        @Override
        public boolean write(MemorySegment source, long offset, long tag) {
            return isMetadata(offset) ? below().write(source, offset, tag) : discardWrite(tag);
        }

        /// Completes a sync without doing it. The log waits for one after each region, but the image need not
        /// survive a crash.
        @Override
        public boolean sync(long tag) {
            return discardWrite(tag);
        }

        private boolean discardWrite(long tag) {
            return inFlight() < depth() && discardedTags.add(tag);
        }

        @Override
        public int await(CompletionSink sink, long timeoutNanos) {
            int count = discardedTags.size();
            for (int i = 0; i < count; i++) {
                sink.completed(discardedTags.remove(), IoOutcome.DONE);
            }
            return count + below().await(sink, count > 0 ? 0 : timeoutNanos);
        }

        @Override
        public int inFlight() {
            return below().inFlight() + discardedTags.size();
        }

        @Override
        public boolean discard(long offset, long length, long tag) {
            return discardWrite(tag);
        }

        @Override
        public String describe() {
            return "trailers only, " + below().describe();
        }
    }
}

package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.SealOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierSource;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.ForwardingDevice;
import io.kvcache.tiers.device.IoOutcome;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLog;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks that come from disk layer by layer, over a device that reads no further than a test says.
final class LayerStepsTest {

    private static final int LAYERS = 16;
    private static final int LAYER_BYTES = 64 << 10;
    private static final int BLOCK_BYTES = LAYERS * LAYER_BYTES;
    private static final int BLOCKS = 12;
    private static final long MIB = 1L << 20;
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final Duration SHORT = Duration.ofMillis(1);

    /// A read is of two layers of a block, in whole pages.
    private static final long MAX_READ_BYTES = 3L * LAYER_BYTES;

    /// A layer of 64 KiB: 16 tokens of 8 heads.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(LAYERS, 8, 128, 16, Dtype.BF16));

    private final Arena arena = Arena.ofShared();
    private final MemorySegment storage = arena.allocate(160 * MIB, 4096);
    private final ExecutorService coders = Executors.newSingleThreadExecutor();
    private final AtomicLong readableBytes = new AtomicLong(Long.MAX_VALUE);
    private volatile boolean isBroken;

    @AfterEach
    void free() {
        coders.shutdownNow();
        arena.close();
    }

    private TieredKvCache open(boolean coded) {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(32 * MIB)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS)
                .tier(new Disk(coded))
                .flushOnClose(Duration.ZERO)
                .build();
        cache.register(SPACE);
        return cache;
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, blocks * 16).map(i -> i + seed * 1_000_000).toArray());
    }

    /// Its lowest bit decides whether it codes.
    private static BlockContent content(BlockChain chain, int index, boolean coded) {
        return new BlockContent((chain.keyLo(index) & ~1) | (coded ? 1 : 0));
    }

    private static void put(TieredKvCache cache, BlockChain chain, boolean coded) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, PATIENCE)) {
                content(chain, index, coded).fill(writer.segment());
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
        }
        assertThat(cache.flush(PATIENCE)).isTrue();
    }

    /// Leading blocks there; the disk of these tests is a device to the store, which a match would count first.
    private static int inHostMemory(TieredKvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquireCopy(chain, 0, Duration.ZERO)) {
            return table.endBlock();
        }
    }

    /// Puts a chain, and others until it is on disk alone.
    private static BlockChain putOnDisk(TieredKvCache cache, boolean coded, int blocks) {
        BlockChain chain = chain(1, blocks);
        put(cache, chain, coded);
        for (int seed = 2; seed == 2 || inHostMemory(cache, chain) > 0; seed++) {
            assertThat(seed).as("chains put after it").isLessThan(10); // its last block may be pinned by what wrote it
            put(cache, chain(seed, 32), coded);
        }
        return chain;
    }

    private static void await(BooleanSupplier holds) {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!holds.getAsBoolean()) {
            assertThat(System.nanoTime()).isLessThan(end);
            Thread.onSpinWait();
        }
    }

    /// Lets the device read on until a table has so many layers. On a busy machine it may get a few reads further,
    /// as it takes a moment until the table has what was read.
    private void readUntil(BlockTable table, int layers) {
        await(() -> {
            readableBytes.updateAndGet(left -> left < MAX_READ_BYTES ? left + LAYER_BYTES : left);
            return table.awaitLayers(layers, SHORT) >= layers;
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenADiskThatReadsALittleAtATime_whenAcquiredByLayers_thenTheFirstLayersAreThereFirst(boolean coded)
            throws Exception {
        try (TieredKvCache cache = open(coded)) {
            BlockChain chain = putOnDisk(cache, coded, BLOCKS);
            readableBytes.set(0);
            try (BlockTable table = cache.acquireByLayers(chain, 0, PATIENCE, 2)) {
                assertThat(table.readyLayers()).isZero();
                assertThat(table.endBlock()).isEqualTo(BLOCKS);
                assertThat(table.readySegment(3).byteSize()).isZero();
                assertThat(table.awaitLayers(1, SHORT)).isZero();
                CompletableFuture<Integer> told =
                        table.onLayers(6, Runnable::run).toCompletableFuture();
                for (int layers = 2; layers < LAYERS; layers += 2) {
                    readUntil(table, layers);
                    assertThat(table.readyEnd()).isLessThan(BLOCKS);
                    if (layers >= 6) {
                        assertThat(told.get(1, TimeUnit.SECONDS)).isGreaterThanOrEqualTo(6);
                    } else {
                        assertThat(told.isDone()).isFalse();
                    }
                    requireLayers(table, chain, coded);
                }
                readableBytes.set(Long.MAX_VALUE);
                assertThat(table.awaitLayers(LAYERS, PATIENCE)).isGreaterThanOrEqualTo(LAYERS);
                assertThat(table.await(BLOCKS, PATIENCE)).isEqualTo(BLOCKS);
                assertThat(table.readyLayers()).isEqualTo(BlockTable.ALL_LAYERS);
                for (int index = 0; index < BLOCKS; index++) {
                    content(chain, index, coded).requireEqual(0, table.segment(index));
                }
            }
            assertThat(inHostMemory(cache, chain)).isEqualTo(BLOCKS);
            assertThat(cache.stats().namespaces().getFirst().blocksLoaded()).isEqualTo(BLOCKS);
            cache.validate();
        }
    }

    private static void requireLayers(BlockTable table, BlockChain chain, boolean coded) {
        int layers = Math.min(LAYERS, table.readyLayers());
        for (int index = table.firstBlock(); index < table.endBlock(); index++) {
            MemorySegment ready = table.readySegment(index);
            assertThat(ready.byteSize()).isGreaterThanOrEqualTo((long) layers * LAYER_BYTES);
            content(chain, index, coded).requireEqual(0, ready);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenADamagedBlock_whenAcquiredByLayers_thenTheTableEndsBeforeItAndItsSlotIsKept(boolean coded) {
        try (TieredKvCache cache = open(coded)) {
            BlockChain chain = putOnDisk(cache, coded, BLOCKS);
            readableBytes.set(0);
            try (BlockTable table = cache.acquireByLayers(chain, 0, PATIENCE, 2)) {
                readUntil(table, 4);
                MemorySegment seen = table.readySegment(7);
                damage(content(chain, 7, coded), coded);
                readableBytes.set(Long.MAX_VALUE);
                assertThat(table.awaitLayers(LAYERS, PATIENCE)).isEqualTo(BlockTable.ALL_LAYERS);
                assertThat(table.await(BLOCKS, PATIENCE)).isEqualTo(7);
                assertThat(table.endBlock()).isEqualTo(7);
                requireLayers(table, chain, coded);
                put(cache, chain(3, 16), coded); // takes every slot that is free
                content(chain, 7, coded).requireEqual(0, seen);
                MemorySegment lost = table.readySegment(7);
                assertThat(lost.byteSize()).isBetween(4L * LAYER_BYTES, BLOCK_BYTES - 1L);
                content(chain, 7, coded).requireEqual(0, lost);
            }
            assertThat(cache.match(chain).blocks()).isEqualTo(7);
            cache.validate();
        }
    }

    /// Flips bits in the last layer of a block, wherever the device has it.
    private void damage(BlockContent content, boolean coded) {
        MemorySegment plain = arena.allocate(BLOCK_BYTES, 4096);
        content.fill(plain);
        long at = coded ? findCoded(plain) : find(plain.asSlice(BLOCK_BYTES - 2 * 4096, 4096));
        storage.set(ValueLayout.JAVA_BYTE, at, (byte) ~storage.get(ValueLayout.JAVA_BYTE, at));
    }

    private long find(MemorySegment page) {
        for (long at = 0; at < storage.byteSize(); at += 4096) {
            if (storage.asSlice(at, 4096).mismatch(page) == -1) {
                return at;
            }
        }
        throw new AssertionError("the block is not on the device");
    }

    /// A byte in the last chunk of a coded block: its head has the sum of the plain chunk.
    private long findCoded(MemorySegment plain) {
        CRC32C crc = new CRC32C();
        crc.update(plain.asSlice(BLOCK_BYTES - LAYER_BYTES).asByteBuffer());
        int sum = (int) crc.getValue();
        for (long at = 0; at < storage.byteSize(); at += 4096) {
            if (storage.get(ValueLayout.JAVA_INT_UNALIGNED, at + (LAYERS - 1) * 8L + 4) == sum) {
                return at + 4096L * (1 + (LAYERS - 1) * 12) + 100;
            }
        }
        throw new AssertionError("the block is not on the device");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenADeviceThatFails_whenLayersWereRead_thenTheyStayUntilTheTableIsClosed(boolean coded) {
        try (TieredKvCache cache = open(coded)) {
            BlockChain chain = putOnDisk(cache, coded, BLOCKS);
            readableBytes.set(0);
            try (BlockTable table = cache.acquireByLayers(chain, 0, PATIENCE, 2)) {
                readUntil(table, 4);
                List<MemorySegment> seen =
                        IntStream.range(0, BLOCKS).mapToObj(table::readySegment).toList();
                isBroken = true;
                readableBytes.set(Long.MAX_VALUE);
                assertThat(table.awaitLayers(LAYERS, PATIENCE)).isEqualTo(BlockTable.ALL_LAYERS);
                assertThat(table.endBlock()).isZero();
                fillHost(cache);
                assertThat(table.readySegment(BLOCKS - 1).byteSize()).isEqualTo(4L * LAYER_BYTES);
                for (int index = 0; index < BLOCKS; index++) {
                    content(chain, index, coded).requireEqual(0, seen.get(index));
                }
            }
            cache.validate();
        }
    }

    private static void fillHost(TieredKvCache cache) {
        BlockChain other = chain(4, 16);
        for (int index = 0; index < other.length(); index++) {
            try (BlockWriter writer = cache.put(other, index, 0, PATIENCE)) {
                writer.segment().fill((byte) 0xAA);
                assertThat(writer.seal()).isEqualTo(SealOutcome.SEALED);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenATableThatIsClosedEarly_whenItsLayersCome_thenTheRestIsNotRead(boolean coded) {
        try (TieredKvCache cache = open(coded)) {
            BlockChain chain = putOnDisk(cache, coded, 28); // of more parts than a disk is given at a time
            readableBytes.set(0);
            BlockTable table = cache.acquireByLayers(chain, 0, PATIENCE, 1);
            BlockTable other = cache.acquireByLayers(chain.prefix(2), 0, PATIENCE, 1);
            table.close();
            readableBytes.set(Long.MAX_VALUE);
            assertThat(other.await(2, PATIENCE)).isEqualTo(2);
            content(chain, 1, coded).requireEqual(0, other.segment(1));
            other.close();
            await(() -> cache.diskStats().getFirst().cancelled() > 0);
            cache.validate();
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void givenBlocksInHostMemory_whenAcquiredByLayers_thenAllLayersAreThere(boolean coded) {
        try (TieredKvCache cache = open(coded)) {
            BlockChain chain = chain(1, 3);
            put(cache, chain, coded);
            try (BlockTable table = cache.acquireByLayers(chain, 0, PATIENCE, 4)) {
                assertThat(table.readyLayers()).isEqualTo(BlockTable.ALL_LAYERS);
                content(chain, 2, coded).requireEqual(0, table.readySegment(2));
            }
            assertThatExceptionOfType(IllegalArgumentException.class)
                    .isThrownBy(() -> cache.acquireByLayers(chain, 0, PATIENCE, 0))
                    .withMessageContaining("layersAStep");
        }
    }

    /// A log over memory.
    private final class Disk implements TierSource {

        private final boolean coded;

        Disk(boolean coded) {
            this.coded = coded;
        }

        private DiskGeometry geometry() {
            return new DiskGeometry(storage.byteSize(), 8 * MIB);
        }

        @Override
        public String name() {
            return "gated";
        }

        @Override
        public long maxLiveBytes() {
            return 100 * MIB;
        }

        @Override
        public long maxBlockBytes() {
            return geometry().maxEntryBytes();
        }

        @Override
        public Tier open(TierListener listener, MemorySegment slots) {
            BlockDevice device = new GatedDevice(MemoryDevice.create(storage, 64));
            return new DiskLog(
                    name(),
                    new DiskLog.Resources(device, device, new MappedMemorySource(MemoryOptions.defaults()), coders),
                    DiskLogConfig.of(geometry(), 1).withStaging(coded),
                    listener);
        }
    }

    /// Ends reads as far as the test lets it, in their order; all else passes.
    private final class GatedDevice extends ForwardingDevice {

        private final long[] bytesOf;
        private final Queue<Ended> ended = new ArrayDeque<>();

        private record Ended(long tag, IoOutcome outcome) {}

        GatedDevice(BlockDevice below) {
            super(below);
            bytesOf = new long[below.depth()];
        }

        @Override
        public boolean read(MemorySegment target, long offset, long tag) {
            bytesOf[(int) tag] = target.byteSize();
            return super.read(target, offset, tag);
        }

        @Override
        public boolean write(MemorySegment source, long offset, long tag) {
            bytesOf[(int) tag] = 0;
            return super.write(source, offset, tag);
        }

        @Override
        public boolean sync(long tag) {
            bytesOf[(int) tag] = 0;
            return super.sync(tag);
        }

        @Override
        public int poll(CompletionSink sink) {
            if (readableBytes.get() > 0) {
                below().submit();
            }
            below().poll((tag, outcome) -> ended.add(new Ended(tag, outcome)));
            int count = 0;
            while (!ended.isEmpty() && take(bytesOf[(int) ended.element().tag])) {
                Ended next = ended.remove();
                boolean fails = isBroken && bytesOf[(int) next.tag] > 0;
                sink.completed(next.tag, fails ? new IoOutcome(IoOutcome.Kind.FAILED, "broken") : next.outcome);
                count++;
            }
            return count;
        }

        private boolean take(long bytes) {
            return readableBytes.getAndUpdate(left -> left >= bytes ? left - bytes : left) >= bytes;
        }

        @Override
        public int await(CompletionSink sink, long timeoutNanos) {
            int count = poll(sink);
            if (count == 0) {
                below().await((tag, outcome) -> ended.add(new Ended(tag, outcome)), Math.min(timeoutNanos, 1_000_000));
                count = poll(sink);
            }
            return count;
        }

        @Override
        public int inFlight() {
            return super.inFlight() + ended.size();
        }
    }
}

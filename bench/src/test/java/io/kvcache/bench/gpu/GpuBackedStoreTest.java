package io.kvcache.bench.gpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.Match;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.host.FakeDeviceDriver;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DeviceBlockMap;
import io.kvcache.gpu.tier.DeviceBlockTable;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.endpoint.EndpointOptions;
import io.kvcache.transport.endpoint.TcpEndpoint;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.logging.Level;
import java.util.logging.Logger;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// A store with a device below it, as an embedder uses it.
@Tag("slow")
final class GpuBackedStoreTest {

    /// 16 tokens of 64 KiB: blocks of 1 MiB.
    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));

    private static final int BLOCK = 1 << 20;
    private static final long DEVICE_BYTES = 160L << 20;
    private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final AtomicBoolean broken = new AtomicBoolean();
    private final CudaTier tier = CudaTier.withDriver("a device", this::device, DEVICE_BYTES);

    private DeviceDriver device() {
        return FakeDeviceDriver.open(2 * DEVICE_BYTES, () -> {
            if (broken.get()) {
                throw new IllegalStateException("the device is broken");
            }
        });
    }

    private static TieredKvCacheBuilder builder() {
        return TieredKvCache.builder()
                .hostBytes(64L << 20)
                .prefaultInBackground(false)
                .failOnLeak(true)
                .admission(AdmissionKind.ALWAYS);
    }

    private TieredKvCache open() {
        TieredKvCache cache = builder().tier(tier).build();
        cache.register(SPACE);
        return cache;
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, blocks * 16).map(i -> i + seed * 1_000_000).toArray());
    }

    private static void put(TieredKvCache cache, BlockChain chain) {
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, Duration.ofNanos(TIMEOUT_NANOS))) {
                if (writer.outcome() == PutOutcome.RESERVED) {
                    writer.copyFrom(BlockContent.of(chain.key(index)).toHeapSegment(BLOCK));
                    writer.seal();
                }
            }
        }
    }

    /// Acquires all that is here and on the device, checks every byte, and answers how many blocks that
    /// are.
    private static int verified(TieredKvCache cache, BlockChain chain) {
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofNanos(TIMEOUT_NANOS))) {
            int ready = table.await(chain.length(), Duration.ofNanos(TIMEOUT_NANOS));
            for (int index = 0; index < ready; index++) {
                BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
            }
            return ready;
        }
    }

    private static void until(BooleanSupplier so) {
        long since = System.nanoTime();
        while (!so.getAsBoolean()) {
            assertThat(System.nanoTime() - since).as("nanoseconds").isLessThan(TIMEOUT_NANOS);
            Pause.briefly();
        }
    }

    /// Asked once each time: what waits now may be what is being written a moment later.
    private static void settle(TieredKvCache cache) {
        until(() -> {
            DiskTierStats now = cache.offloadStats();
            return now.writing() == 0 && now.waitingBytes() == 0;
        });
    }

    private static long deviceEvents(TieredKvCache cache, BlockChain chain, EventKind kind) {
        Set<Long> keys =
                IntStream.range(0, chain.length()).mapToObj(chain::keyLo).collect(Collectors.toSet());
        return cache.events().since(0, 1 << 16).events().stream()
                .filter(event ->
                        event.tier() == TierKind.DEVICE && event.kind() == kind && keys.contains(event.keyLo()))
                .count();
    }

    private int onDevice(BlockChain chain) {
        try (DeviceBlockTable table = tier.acquire(chain, 0)) {
            return table.endBlock();
        }
    }

    @Test
    void givenMoreThanHostMemoryHolds_whenAcquired_thenTheRestComesFromTheDevice() {
        try (TieredKvCache cache = open()) {
            BlockChain first = chain(1, 40);
            put(cache, first);
            until(() -> onDevice(first) == 40);
            BlockChain second = chain(2, 60);
            put(cache, second);
            settle(cache); // a leaf that is being written is pinned, and all above it stays with it
            assertThat(cache.match(first)).isEqualTo(new Match(40, 0, 0));
            assertThat(deviceEvents(cache, first, EventKind.STORED)).isEqualTo(40);
            assertThat(verified(cache, first)).isEqualTo(40);
            cache.validate();
        }
    }

    @Test
    void givenManyTimesWhatAllHolds_whenPut_thenWhatIsLeftIsRight() {
        try (TieredKvCache cache = open()) {
            for (int seed = 0; seed < 20; seed++) {
                put(cache, chain(seed, 30));
            }
            settle(cache);
            int found = 0;
            for (int seed = 0; seed < 20; seed++) {
                found += verified(cache, chain(seed, 30));
            }
            assertThat(found).isGreaterThan(60);
            cache.validate();
        }
    }

    @Test
    void givenADrop_whenTheDeviceHeardOfIt_thenAnEngineFindsNothing() {
        try (TieredKvCache cache = open()) {
            BlockChain chain = chain(1, 10);
            put(cache, chain);
            until(() -> onDevice(chain) == 10);
            cache.drop(chain, 4);
            until(() -> onDevice(chain) == 4);
            assertThat(cache.match(chain).blocks()).isEqualTo(4);
        }
    }

    @Test
    void givenADeviceThatFails_whenServing_thenTheStoreGoesOnWithoutIt() {
        Logger log = Logger.getLogger("io.kvcache");
        log.setLevel(Level.OFF);
        try (TieredKvCache cache = open()) {
            BlockChain first = chain(1, 40);
            put(cache, first);
            until(() -> onDevice(first) == 40);
            broken.set(true);
            put(cache, chain(2, 60));
            until(() -> onDevice(first) == 0);
            until(() -> deviceEvents(cache, first, EventKind.EVICTED) == 40);
            assertThat(cache.match(first).deviceBlocks()).isZero();
            BlockChain third = chain(3, 20);
            put(cache, third);
            assertThat(verified(cache, third)).isEqualTo(20);
            assertThat(verified(cache, first)).isLessThan(40);
            cache.validate();
        } finally {
            log.setLevel(null);
        }
    }

    @Test
    void givenAFlush_whenAsked_thenItIsNotSaidToBeDurable() {
        try (TieredKvCache cache = open()) {
            put(cache, chain(1, 5));
            assertThat(cache.flush(Duration.ofNanos(TIMEOUT_NANOS))).isFalse();
        }
    }

    @Test
    void givenADeviceThatCannotBeOpened_whenBuilt_thenTheErrorSaysWhy() {
        Supplier<DeviceDriver> small = () -> FakeDeviceDriver.open(DEVICE_BYTES / 2);
        TieredKvCacheBuilder builder = builder().tier(CudaTier.withDriver("a small device", small, DEVICE_BYTES));
        assertThatExceptionOfType(DeviceException.class)
                .isThrownBy(builder::build)
                .withMessageContaining("OUT_OF_MEMORY");
    }

    @TempDir
    private Path folder;

    private static final long DISK_BYTES = 512L << 20;

    private TieredKvCache openWithDisk() {
        TieredKvCache cache =
                builder().tier(tier).disk(folder.resolve("a"), DISK_BYTES).build();
        cache.register(SPACE);
        return cache;
    }

    private static long read(TieredKvCache cache) {
        return cache.diskStats().stream()
                .mapToLong(disk -> disk.tier().readsGood())
                .sum();
    }

    @Test
    void givenADiskBehindADevice_whenBlocksAreWritten_thenTheyAreInBothAndAFlushIsDurable() {
        BlockChain first = chain(1, 40);
        try (TieredKvCache cache = openWithDisk()) {
            put(cache, first);
            assertThat(cache.flush(Duration.ofNanos(TIMEOUT_NANOS))).isTrue();
            until(() -> onDevice(first) == 40);
            put(cache, chain(2, 60));
            settle(cache);
            until(() -> cache.match(first).equals(new Match(40, 0, 0)));
            until(() -> verified(cache, first) == 40); // once nothing is pinned for a copy
            cache.validate();
        }
        try (TieredKvCache cache = openWithDisk()) {
            until(() -> cache.match(first).blocks() == 40);
            assertThat(onDevice(first)).as("after a restart").isZero();
            assertThat(cache.match(first).deviceBlocks()).isZero();
            until(() -> verified(cache, first) == 40); // once nothing is pinned for a copy
            until(() -> onDevice(first) == 40); // after it was read
            cache.drop(first, 10);
            until(() -> onDevice(first) == 10);
            cache.validate();
        }
    }

    @Test
    void givenADiskBehindADevice_whenTheDeviceFails_thenEveryBlockComesFromTheDisk() {
        Logger log = Logger.getLogger("io.kvcache");
        log.setLevel(Level.OFF);
        try (TieredKvCache cache = openWithDisk()) {
            BlockChain first = chain(1, 40);
            put(cache, first);
            assertThat(cache.flush(Duration.ofNanos(TIMEOUT_NANOS))).isTrue();
            put(cache, chain(2, 60));
            settle(cache);
            broken.set(true);
            until(() -> verified(cache, first) == 40); // once nothing is pinned for a copy
            until(() -> onDevice(first) == 0);
            until(() -> cache.match(first).deviceBlocks() == 0);
            assertThat(cache.match(first).blocks()).isEqualTo(40);
            until(() -> read(cache) > 0); // told a tick later
            cache.validate();
        } finally {
            log.setLevel(null);
        }
    }

    @Test
    void givenTwoDisksBehindOneDevice_whenAChainLiesOnBoth_thenAnEngineFindsAllOfIt() {
        TieredKvCacheBuilder builder =
                builder().tier(tier).disk(folder.resolve("a"), DISK_BYTES).disk(folder.resolve("b"), DISK_BYTES);
        try (TieredKvCache cache = builder.build()) {
            cache.register(SPACE);
            BlockChain chain = chain(1, 40);
            put(cache, chain);
            assertThat(cache.flush(Duration.ofNanos(TIMEOUT_NANOS))).isTrue();
            until(() -> onDevice(chain) == 40);
            cache.validate();
        }
    }

    /// It reads the store's records itself, but these do not tell what is on a device.
    @Test
    void givenAClientInSharedMemory_whenItMatches_thenItHearsOfTheDevice() throws IOException {
        try (TieredKvCache cache = builder().tier(tier).shareMemory(folder).build();
                TcpEndpoint endpoint = TcpEndpoint.open(
                        cache, new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), EndpointOptions.DEFAULTS);
                RemoteKvCache client = RemoteKvCache.connect(
                        "shm:127.0.0.1:" + endpoint.address().getPort())) {
            cache.register(SPACE);
            client.register(SPACE);
            BlockChain chain = chain(1, 10);
            put(cache, chain);
            until(() -> onDevice(chain) == 10);
            assertThat(client.match(chain)).isEqualTo(new Match(10, 0, 0));
            cache.drop(chain, 4);
            assertThat(client.match(chain)).isEqualTo(new Match(4, 0, 0));
        }
    }

    @Test
    void givenTwoDevicesInFrontOfOneDisk_whenBlocksAreWritten_thenEachDeviceHasAPartAndOneThatFailsTakesOnlyIts() {
        Logger log = Logger.getLogger("io.kvcache");
        log.setLevel(Level.OFF);
        CudaTier other =
                CudaTier.withDriver("another device", () -> FakeDeviceDriver.open(2 * DEVICE_BYTES), DEVICE_BYTES);
        TieredKvCacheBuilder builder = builder().tier(tier).tier(other).disk(folder.resolve("a"), DISK_BYTES);
        try (TieredKvCache cache = builder.build()) {
            cache.register(SPACE);
            BlockChain chain = chain(1, 40);
            put(cache, chain);
            assertThat(cache.flush(Duration.ofNanos(TIMEOUT_NANOS))).isTrue();
            until(() -> cache.match(chain).deviceBlocks() == 40);
            int first = blocks(tier, chain);
            assertThat(first).isBetween(8, 32);
            assertThat(blocks(other, chain)).isEqualTo(40 - first);
            put(cache, chain(2, 60));
            settle(cache);
            until(() -> verified(cache, chain) == 40);
            broken.set(true);
            put(cache, chain(3, 40));
            until(() -> cache.match(chain).deviceBlocks() <= 40 - first);
            until(() -> verified(cache, chain) == 40); // once there is room again
            cache.validate();
        } finally {
            log.setLevel(null);
        }
    }

    private static int blocks(CudaTier of, BlockChain chain) {
        try (DeviceBlockMap there = of.acquireEach(chain, 0, chain.length())) {
            return (int)
                    IntStream.range(0, chain.length()).filter(there::contains).count();
        }
    }
}

package io.kvcache.gpu.tier;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ChunkedCrc;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierRead.Outcome;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/// A store's side of a device tier, with a model of what lies where, that looks at every byte which comes
/// back.
final class DeviceTierHarness implements TierListener {

    static final int BLOCK_BYTES = 20_000;
    private static final Namespace NAMESPACE = Namespace.of("device", BlockShape.kv(2, 2, 64, 16, Dtype.BF16));
    private static final long TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(60);

    private final Arena arena = Arena.ofShared();
    private final Map<Long, PendingWrite> writes = new HashMap<>();
    private final Set<Long> burials = new HashSet<>();
    private final Map<Long, PendingRead> reads = new HashMap<>();
    private final List<MemorySegment> slots = new ArrayList<>();
    final Map<BlockKey, Long> places = new HashMap<>();
    final List<Boolean> flushes = new ArrayList<>();
    final List<BlockKey> used = new ArrayList<>();
    private long nextTag;
    private long now;
    int written;
    int refused;
    int good;
    int notRead;

    private record PendingWrite(TierBlock block, MemorySegment slot) {}

    private record PendingRead(BlockKey key, MemorySegment slot) {}

    static TierBlock block(BlockKey key, int checksum) {
        return new TierBlock(key.hi(), key.lo(), 0, 0, 0, false, 0, BLOCK_BYTES, checksum, 0);
    }

    static BlockKey key(long number) {
        return new BlockKey(number, ~number);
    }

    static BlockChain chain(int blocks) {
        return chain(0, blocks);
    }

    static BlockChain chain(int first, int blocks) {
        int[] tokens = new int[16 * blocks];
        for (int i = 0; i < tokens.length; i++) {
            tokens[i] = first + i;
        }
        return BlockChain.of(NAMESPACE, tokens);
    }

    static void requireOnDevice(DeviceDriver driver, DeviceSpan span, BlockKey key) {
        try (Arena arena = Arena.ofShared()) {
            MemorySegment back = arena.allocate(BLOCK_BYTES);
            DeviceStream stream = driver.openStream(Priority.NORMAL);
            DeviceEvent event = driver.openEvent();
            stream.copyToHost(span.address(), back);
            stream.record(event);
            assertThat(event.await(TIMEOUT_NANOS)).isTrue();
            event.close();
            stream.close();
            BlockContent.of(key).requireEqual(back);
        }
    }

    private MemorySegment slot() {
        return slots.isEmpty() ? arena.allocate(DeviceGeometry.pages(BLOCK_BYTES), 4096) : slots.removeLast();
    }

    /// A slot goes to the next user as soon as the tier gives it back, and is overwritten at once.
    private void giveBack(MemorySegment slot) {
        slot.fill((byte) 0xEE);
        slots.add(slot);
    }

    /// Has a block written.
    ///
    /// @return false when the tier takes none now
    boolean write(DeviceTier tier, BlockKey key) {
        MemorySegment slot = slot();
        BlockContent.of(key).fill(slot.asSlice(0, BLOCK_BYTES));
        TierBlock block = block(key, ChunkedCrc.of(slot.asSlice(0, BLOCK_BYTES)));
        long tag = ++nextTag;
        SubmitResult submitResult = tier.write(block, List.of(slot.asSlice(0, 4096), slot.asSlice(4096)), tag);
        if (submitResult == SubmitResult.ACCEPTED) {
            writes.put(tag, new PendingWrite(block, slot));
        } else {
            giveBack(slot);
        }
        return submitResult == SubmitResult.ACCEPTED;
    }

    /// Has a block read that is somewhere.
    boolean read(DeviceTier tier, BlockKey key) {
        long place = Objects.requireNonNull(places.get(key));
        MemorySegment slot = slot();
        BlockContent.of(key).fill(slot.asSlice(0, BLOCK_BYTES));
        int checksum = ChunkedCrc.of(slot.asSlice(0, BLOCK_BYTES));
        slot.fill((byte) 0x11);
        long tag = ++nextTag;
        SubmitResult submitResult = tier.read(new TierRead(block(key, checksum), place, List.of(slot), tag));
        if (submitResult == SubmitResult.ACCEPTED) {
            reads.put(tag, new PendingRead(key, slot));
        } else {
            giveBack(slot);
        }
        return submitResult == SubmitResult.ACCEPTED;
    }

    /// Has a block buried.
    void tombstone(DeviceTier tier, BlockKey key) {
        long tag = ++nextTag;
        burials.add(tag);
        assertThat(tier.tombstone(new Tombstone(key.hi(), key.lo(), 0, false), tag))
                .isEqualTo(SubmitResult.ACCEPTED);
    }

    void tick(DeviceTier tier) {
        tick(tier, 100_000);
    }

    void tick(DeviceTier tier, long waitNanos) {
        now += 1_000_000;
        tier.tick(now, waitNanos);
    }

    void tickUntil(DeviceTier tier, BooleanSupplier so) {
        long start = System.nanoTime();
        while (!so.getAsBoolean()) {
            assertThat(System.nanoTime() - start).as("nanoseconds").isLessThan(TIMEOUT_NANOS);
            tick(tier);
        }
    }

    int inFlight() {
        return writes.size() + reads.size() + burials.size();
    }

    void close() {
        arena.close();
    }

    @Override
    public Namespace namespace(int namespaceId) {
        throw new AssertionError("a device needs no names");
    }

    @Override
    public int namespaceId(Namespace namespace) {
        throw new AssertionError("a device needs no names");
    }

    @Override
    public void onWritten(long tag, long place) {
        if (burials.remove(tag)) {
            return;
        }
        PendingWrite write = writes.remove(tag);
        if (write == null) {
            throw new AssertionError("told twice, or never asked");
        }
        if (place < 0) {
            refused++;
        } else {
            written++;
            places.put(new BlockKey(write.block.keyHi(), write.block.keyLo()), place);
        }
        giveBack(write.slot);
    }

    @Override
    public void onRead(long tag, Outcome outcome) {
        PendingRead read = reads.remove(tag);
        if (read == null) {
            throw new AssertionError("told twice, or never asked");
        }
        assertThat(outcome).as("damage").isNotEqualTo(Outcome.CORRUPT);
        if (outcome == Outcome.SUCCESS) {
            good++;
            BlockContent.of(read.key).requireEqual(read.slot.asSlice(0, BLOCK_BYTES));
        } else {
            notRead++;
        }
        giveBack(read.slot);
    }

    @Override
    public void onFlushed(long tag, boolean durable) {
        flushes.add(durable);
    }

    @Override
    public void onRecovered(TierBlock block, long place) {
        throw new AssertionError("a device keeps nothing");
    }

    @Override
    public void onTombstone(long keyHi, long keyLo) {
        throw new AssertionError("a device keeps nothing");
    }

    @Override
    public void onRecoveryEnded() {}

    /// Keeps every third block.
    @Override
    public void onReclaim(ReclaimCandidates offer) {
        for (int i = 0; i < offer.size(); i++) {
            BlockKey key = new BlockKey(offer.keyHi(i), offer.keyLo(i));
            Long place = places.get(key);
            if (place != null && place == offer.address(i) && (key.hi() % 3 != 0 || !offer.keep(i))) {
                places.remove(key);
            }
        }
    }

    @Override
    public void onMoved(TierBlock block, long from, long to) {
        places.replace(new BlockKey(block.keyHi(), block.keyLo()), from, to);
    }

    @Override
    public void onLost(TierBlock block, long place) {
        places.remove(new BlockKey(block.keyHi(), block.keyLo()), place);
    }

    @Override
    public void onUsed(TierBlock block, long place) {
        used.add(new BlockKey(block.keyHi(), block.keyLo()));
    }
}

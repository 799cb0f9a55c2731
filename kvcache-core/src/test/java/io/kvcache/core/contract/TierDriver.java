package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.Tombstone;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;

/// A store's side of a [Tier]: drives it, writes down what it is told, and numbers namespaces in the order in which
/// it hears of them, beginning with those that the test knows.
class TierDriver implements TierListener {

    /// Enough for a disk that is slow; a tick waits at most a millisecond.
    private static final int MAX_TICKS = 200_000;

    private static final long TICK_NANOS = 1_000_000;

    final Map<Long, Long> places = new LinkedHashMap<>();
    final Map<Long, TierRead.Outcome> reads = new HashMap<>();
    final Map<Long, Boolean> flushes = new HashMap<>();
    final List<TierBlock> recovered = new ArrayList<>();
    final Map<TierKey, Long> recoveredAt = new HashMap<>();
    final List<TierKey> buried = new ArrayList<>();
    final Map<Long, Long> moved = new HashMap<>();
    final List<Long> offered = new ArrayList<>();
    final List<Long> lost = new ArrayList<>();
    final List<Namespace> namespaces = new ArrayList<>();
    Predicate<TierKey> keep = _ -> false;
    boolean recoveryEnded;
    private final long waitNanos;
    private Tier tier;
    private long now;
    private long nextTag;

    /// The key of a block.
    record TierKey(long hi, long lo) {
        static TierKey of(TierBlock block) {
            return new TierKey(block.keyHi(), block.keyLo());
        }
    }

    @SuppressWarnings("NullAway.Init") // opened at once by whoever makes it
    TierDriver(long waitNanos, Namespace... known) {
        this.waitNanos = waitNanos;
        namespaces.addAll(List.of(known));
    }

    /// Opens a tier and drives it until it knows what it is.
    Tier open(TierUnderTest subject) {
        tier = subject.open(this);
        awaitTrue("the tier opens", () -> tier.state() != TierState.OPENING);
        return tier;
    }

    /// Opens a tier and drives it until it has told all.
    Tier openAndRecover(TierUnderTest subject) {
        open(subject);
        assertThat(tier.state()).as(tier.cause()).isEqualTo(TierState.SERVING);
        awaitTrue("the recovery ends", () -> recoveryEnded && !tier.isRecovering());
        return tier;
    }

    void tick() {
        tick(waitNanos);
    }

    void tick(long wait) {
        now += TICK_NANOS;
        tier.tick(now, wait);
    }

    void awaitTrue(String what, BooleanSupplier holds) {
        for (int i = 0; !holds.getAsBoolean(); i++) {
            if (i == MAX_TICKS) {
                throw new AssertionError(what + ": not after " + i + " ticks, " + tier.state() + " " + tier.stats());
            }
            tick();
        }
    }

    /// Returns the address at which a block was found.
    long recoveredAt(TierBlock block) {
        return Objects.requireNonNull(recoveredAt.get(TierKey.of(block)), "not told");
    }

    /// Returns the present address of a block that was kept, perhaps several times.
    long follow(long place) {
        long at = place;
        for (Long next = moved.get(at); next != null; next = moved.get(at)) {
            at = next;
        }
        return at;
    }

    long tag() {
        return ++nextTag;
    }

    /// Has a block written, and waits until it is.
    ///
    /// @return its place, or -1
    long write(TierBlock block, List<MemorySegment> pages) {
        long tag = begin(block, pages);
        awaitTrue("a write ends", () -> places.containsKey(tag));
        return Objects.requireNonNull(places.get(tag));
    }

    /// Has a block taken.
    long begin(TierBlock block, List<MemorySegment> pages) {
        long tag = tag();
        awaitTrue("a write is taken", () -> {
            SubmitResult submitResult = tier.write(block, pages, tag);
            assertThat(submitResult).isIn(SubmitResult.ACCEPTED, SubmitResult.RETRY);
            return submitResult == SubmitResult.ACCEPTED;
        });
        return tag;
    }

    void bury(Tombstone tombstone) {
        long tag = tag();
        awaitTrue("a tombstone is taken", () -> tier.tombstone(tombstone, tag) == SubmitResult.ACCEPTED);
        awaitTrue("a tombstone ends", () -> places.containsKey(tag));
    }

    TierRead.Outcome read(TierBlock block, long place, List<MemorySegment> pages) {
        long tag = tag();
        TierRead read = new TierRead(block, place, pages, tag);
        awaitTrue("a read is taken", () -> {
            SubmitResult submitResult = tier.read(read);
            assertThat(submitResult).isIn(SubmitResult.ACCEPTED, SubmitResult.RETRY);
            return submitResult == SubmitResult.ACCEPTED;
        });
        awaitTrue("a read ends", () -> reads.containsKey(tag));
        return Objects.requireNonNull(reads.get(tag));
    }

    void flush() {
        long tag = tag();
        assertThat(tier.flush(tag)).isEqualTo(SubmitResult.ACCEPTED);
        awaitTrue("a flush ends", () -> flushes.containsKey(tag));
        assertThat(flushes.get(tag)).isTrue();
    }

    boolean idle() {
        return tier.isIdle();
    }

    void close() {
        tier.close();
    }

    @Override
    public Namespace namespace(int namespaceId) {
        return namespaces.get(namespaceId);
    }

    @Override
    public int namespaceId(Namespace namespace) {
        if (!namespaces.contains(namespace)) {
            namespaces.add(namespace);
        }
        return namespaces.indexOf(namespace);
    }

    @Override
    public void onWritten(long tag, long place) {
        assertThat(places.putIfAbsent(tag, place)).as("told once").isNull();
    }

    @Override
    public void onRead(long tag, TierRead.Outcome outcome) {
        assertThat(reads.putIfAbsent(tag, outcome)).as("told once").isNull();
    }

    @Override
    public void onFlushed(long tag, boolean durable) {
        assertThat(flushes.putIfAbsent(tag, durable)).as("told once").isNull();
    }

    @Override
    public void onRecovered(TierBlock block, long place) {
        assertThat(recoveryEnded).isFalse();
        TierKey key = TierKey.of(block);
        if (!buried.contains(key)) {
            recovered.add(block);
            recoveredAt.putIfAbsent(key, place);
        }
    }

    @Override
    public void onTombstone(long keyHi, long keyLo) {
        buried.add(new TierKey(keyHi, keyLo));
    }

    @Override
    public void onRecoveryEnded() {
        recoveryEnded = true;
    }

    @Override
    public void onReclaim(ReclaimCandidates offer) {
        for (int i = 0; i < offer.size(); i++) {
            offered.add(offer.address(i));
            if (keep.test(new TierKey(offer.keyHi(i), offer.keyLo(i)))) {
                offer.keep(i);
            }
        }
    }

    @Override
    public void onMoved(TierBlock block, long from, long to) {
        moved.put(from, to);
    }

    @Override
    public void onLost(TierBlock block, long place) {
        lost.add(place);
    }
}

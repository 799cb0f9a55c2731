package io.kvcache.tiers.front;

import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierRead.Outcome;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import io.kvcache.core.tier.Tombstone;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/// A tier that ends what it was given when the test says so, and tells what it was asked.
final class ScriptedTier implements Tier {

    /// The place before the first.
    static final long FIRST_ADDRESS = 1000;

    private final TierListener listener;
    private final Deque<Runnable> underWay = new ArrayDeque<>();
    private final Map<Long, byte[]> blocks = new HashMap<>();
    final List<String> requests = new ArrayList<>();
    boolean held = true;
    boolean corrupt;
    boolean inUse;
    int closed;
    int ticksAfterClosing;
    private TierState state = TierState.SERVING;
    private long nextAddress = FIRST_ADDRESS;

    ScriptedTier(TierListener listener) {
        this.listener = listener;
    }

    /// Answers everything that it was given with failure, and nothing more.
    void fail() {
        state = TierState.FAILED;
        held = false;
    }

    /// Somebody uses a block there.
    void use(TierBlock block, long address) {
        listener.onUsed(block, address);
    }

    /// Is about to give a span up.
    void offer(ReclaimCandidates offer) {
        listener.onReclaim(offer);
    }

    @Override
    public SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag) {
        requests.add("write " + block.keyHi());
        underWay.add(() -> {
            if (state == TierState.FAILED) {
                listener.onWritten(tag, -1);
                return;
            }
            byte[] bytes = new byte[block.bytes()];
            int at = 0;
            for (MemorySegment page : pages) {
                int length = (int) Math.min(page.byteSize(), bytes.length - at);
                MemorySegment.copy(page, 0, MemorySegment.ofArray(bytes), at, length);
                at += length;
            }
            blocks.put(++nextAddress, bytes);
            listener.onWritten(tag, nextAddress);
        });
        return SubmitResult.ACCEPTED;
    }

    @Override
    public SubmitResult read(TierRead read) {
        requests.add("read " + read.block().keyHi());
        underWay.add(() -> {
            if (corrupt || state == TierState.FAILED) {
                listener.onRead(read.tag(), corrupt ? Outcome.CORRUPT : Outcome.UNREADABLE);
                return;
            }
            byte[] bytes = Objects.requireNonNull(blocks.get(read.address()));
            int at = 0;
            for (MemorySegment page : read.pages()) {
                int length = (int) Math.min(page.byteSize(), bytes.length - at);
                MemorySegment.copy(MemorySegment.ofArray(bytes), at, page, 0, length);
                at += length;
            }
            listener.onRead(read.tag(), Outcome.SUCCESS);
        });
        return SubmitResult.ACCEPTED;
    }

    @Override
    public SubmitResult tombstone(Tombstone tombstone, long tag) {
        requests.add("bury " + tombstone.keyHi());
        underWay.add(() -> listener.onWritten(tag, 0));
        return SubmitResult.ACCEPTED;
    }

    @Override
    public SubmitResult flush(long tag) {
        requests.add("flush");
        return SubmitResult.REJECTED;
    }

    @Override
    public int tick(long nowNanos, long waitNanos) {
        ticksAfterClosing += closed > 0 ? 1 : 0;
        int done = held ? 0 : underWay.size();
        for (int i = 0; i < done; i++) {
            underWay.remove().run();
        }
        return done;
    }

    @Override
    public String name() {
        return "in front";
    }

    @Override
    public TierState state() {
        return state;
    }

    @Override
    public String cause() {
        return state == TierState.FAILED ? "the test wants it so" : "";
    }

    @Override
    public long maxBlockBytes() {
        return 1 << 20;
    }

    @Override
    public boolean isRecovering() {
        return false;
    }

    @Override
    public void wake() {}

    @Override
    public boolean isIdle() {
        return underWay.isEmpty() && !(inUse && state == TierState.FAILED);
    }

    @Override
    public void stop() {}

    @Override
    public TierStats stats() {
        return TierStats.empty("held", 1 << 20);
    }

    @Override
    public void close() {
        if (inUse) {
            throw new IllegalStateException("somebody reads there");
        }
        held = false;
        tick(0, 0);
        closed++;
    }
}

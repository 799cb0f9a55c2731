package io.kvcache.tiers.front;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.core.time.Backoff;
import io.kvcache.tiers.front.CachedDiskTier.RetiredTiers;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// The tier in front: blocks are copied to it and read from it while it is there. When it fails its copies
/// are forgotten, and it is opened again after a while that doubles.
///
/// Owned by the tier's thread.
final class FrontCacheTier implements TierListener {

    private static final Logger LOG = System.getLogger(FrontCacheTier.class.getName());

    static final long INITIAL_BACKOFF_NANOS = TimeUnit.SECONDS.toNanos(5);
    static final long MAX_BACKOFF_NANOS = TimeUnit.MINUTES.toNanos(10);

    private final String name;
    private final Function<TierListener, Tier> opener;
    private final TierListener store;
    private final FrontCopyIndex copyIndex;
    private final RetiredTiers retiredTiers;
    private final Map<Long, Consumer<Long>> writes = new HashMap<>();
    private final Map<Long, Consumer<TierRead.Outcome>> reads = new HashMap<>();
    private volatile @Nullable Tier tier;
    private long nextTag;
    private final Backoff backoff = new Backoff(INITIAL_BACKOFF_NANOS, MAX_BACKOFF_NANOS);
    private long retryAtNanos = Long.MIN_VALUE / 2;
    private boolean out;
    private boolean failed;

    /// @param opener opens the tier in front
    /// @param retiredTiers fronts from before, of which none may be there when this one is opened
    FrontCacheTier(String name, Function<TierListener, Tier> opener, TierListener store, RetiredTiers retiredTiers) {
        this.retiredTiers = retiredTiers;
        this.name = name;
        this.opener = opener;
        this.store = store;
        copyIndex = new FrontCopyIndex(store::score);
    }

    FrontCopyIndex copyIndex() {
        return copyIndex;
    }

    /// @throws RuntimeException when it cannot be opened
    void open() {
        retiredTiers.close();
        tier = opener.apply(this);
        failed = false;
    }

    /// Has it be opened by a later tick.
    void scheduleOpen() {
        LOG.log(Level.INFO, "{0} is still used as it was before its disk failed: the disk is back without it", name);
        out = true;
    }

    /// Leaves it to be closed once it is no longer in use, if nothing is on its way there.
    ///
    /// @return whether it was
    boolean retire() {
        Tier present = tier;
        if (present == null || isBusy()) {
            return false;
        }
        retiredTiers.add(present);
        tier = null;
        return true;
    }

    private boolean isServing() {
        Tier present = tier;
        return present != null && present.state() == TierState.SERVING;
    }

    /// Copies a block, if that can be now.
    ///
    /// @param then hears the place, or -1; the memory is its owner's again then
    /// @return whether it will hear
    boolean write(TierBlock block, List<MemorySegment> pages, Consumer<Long> then) {
        Tier present = tier;
        if (present == null || !isServing() || block.isObject() || block.bytes() > present.maxBlockBytes()) {
            return false;
        }
        long tag = ++nextTag;
        if (present.write(block, pages, tag) != SubmitResult.ACCEPTED) {
            return false;
        }
        writes.put(tag, then);
        return true;
    }

    /// Reads a block, if it is in front.
    ///
    /// @param then hears how it went
    /// @return whether it will hear
    boolean read(TierRead read, Consumer<TierRead.Outcome> then) {
        Tier present = tier;
        Long address = copyIndex.find(read.address());
        if (present == null || address == null || !isServing()) {
            return false;
        }
        long tag = ++nextTag;
        switch (present.read(new TierRead(read.block(), address, read.pages(), tag))) {
            case ACCEPTED -> {
                reads.put(tag, then);
                copyIndex.markUsed(read.address());
                return true;
            }
            case GONE -> copyIndex.removeByDiskAddress(read.address());
            case RETRY, REJECTED -> {}
        }
        return false;
    }

    /// Hides it from look-ups here.
    void tombstone(Tombstone tombstone) {
        Tier present = tier;
        if (present != null && isServing()) {
            long tag = ++nextTag;
            if (present.tombstone(tombstone, tag) == SubmitResult.ACCEPTED) {
                writes.put(tag, _ -> {});
            }
        }
    }

    /// Does what there is to do.
    ///
    /// @return how much was done
    int tick(long nowNanos, long waitNanos) {
        Tier present = tier;
        if (present == null) {
            return out && nowNanos - retryAtNanos >= 0 ? reopen(nowNanos) : 0;
        }
        int done = present.tick(nowNanos, waitNanos);
        if (present.state() == TierState.FAILED) {
            copyIndex.clear();
            if (!failed) {
                failed = true;
                LOG.log(Level.WARNING, "{0} is taken out, and its disk serves on: {1}", name, present.cause());
            }
            if (present.isIdle() && nowNanos - retryAtNanos >= 0) {
                disable(nowNanos);
            }
        } else if (done > 0) {
            backoff.reset();
        }
        return done;
    }

    private void disable(long nowNanos) {
        try {
            close();
            out = true;
        } catch (IllegalStateException used) {
            LOG.log(Level.WARNING, name + " failed, and cannot be closed yet", used);
        }
        scheduleRetry(nowNanos);
    }

    private void scheduleRetry(long nowNanos) {
        retryAtNanos = nowNanos + backoff.nextNanos();
    }

    private int reopen(long nowNanos) {
        try {
            open();
            out = false;
            LOG.log(Level.INFO, "{0} is back", name);
            return 1;
        } catch (RuntimeException refused) {
            LOG.log(Level.DEBUG, "not back yet", refused);
            scheduleRetry(nowNanos);
            return 0;
        }
    }

    /// Returns whether an operation is in flight. A failed tier may stay in use for long, without anything to do
    /// about it.
    boolean isBusy() {
        Tier present = tier;
        if (present == null) {
            return false;
        }
        return present.state() == TierState.FAILED ? !(writes.isEmpty() && reads.isEmpty()) : !present.isIdle();
    }

    /// Any thread.
    void wake() {
        Tier present = tier;
        if (present != null) {
            present.wake();
        }
    }

    /// Any thread; null while it is out.
    @Nullable
    Tier currentTier() {
        return tier;
    }

    /// Lets go of it.
    ///
    /// @throws IllegalStateException when something is on its way there, or its memory is in use: it stays
    ///     open then
    void close() {
        Tier present = tier;
        copyIndex.clear();
        if (present != null) {
            present.close();
            tier = null;
        }
    }

    @Override
    public void onWritten(long tag, long address) {
        Consumer<Long> then = writes.remove(tag);
        if (then != null) {
            then.accept(address);
        }
    }

    @Override
    public void onRead(long tag, TierRead.Outcome outcome) {
        Consumer<TierRead.Outcome> then = reads.remove(tag);
        if (then != null) {
            then.accept(outcome);
        }
    }

    @Override
    public Namespace namespace(int namespaceId) {
        return store.namespace(namespaceId);
    }

    @Override
    public int namespaceId(Namespace namespace) {
        return store.namespaceId(namespace);
    }

    @Override
    public void onReclaim(ReclaimCandidates offer) {
        copyIndex.selectKept(offer);
    }

    @Override
    public void onMoved(TierBlock block, long from, long to) {
        copyIndex.updateAddress(from, to);
    }

    @Override
    public void onLost(TierBlock block, long address) {
        copyIndex.removeByAddress(address);
    }

    @Override
    public void onUsed(TierBlock block, long address) {
        copyIndex.markUsedAt(address);
        store.onUsed(block, address);
    }

    @Override
    public void onDeviceCopy(long keyHi, long keyLo, boolean isPresent) {
        store.onDeviceCopy(keyHi, keyLo, isPresent);
    }

    /// Ignored: earlier contents of the front do not count, only blocks written to it together with the disk.
    @Override
    public void onRecovered(TierBlock block, long address) {}

    @Override
    public void onTombstone(long keyHi, long keyLo) {}

    @Override
    public void onRecoveryEnded() {}

    @Override
    public void onFlushed(long tag, boolean durable) {}

    /// Index of the copies in front of a disk, with their addresses.
    ///
    /// Owned by the tier's thread.
    static final class FrontCopyIndex {

        private final Map<Long, Copy> byDiskAddress = new HashMap<>();
        private final Map<Long, Copy> byAddress = new HashMap<>();

        private final Scorer scorer;

        /// How much a block is wanted, see [io.kvcache.core.tier.TierListener#score].
        interface Scorer {
            double score(long keyHi, long keyLo);
        }

        FrontCopyIndex(Scorer scorer) {
            this.scorer = scorer;
        }

        private static final class Copy {
            private long diskAddress;
            private long address;
            private boolean used;

            Copy(long diskAddress, long address) {
                this.diskAddress = diskAddress;
                this.address = address;
            }
        }

        /// Adds the copy in front of a block at an address of the disk.
        void add(long diskAddress, long address) {
            removeByDiskAddress(diskAddress);
            Copy copy = new Copy(diskAddress, address);
            byDiskAddress.put(diskAddress, copy);
            byAddress.put(address, copy);
        }

        /// Returns the address of the copy, or null when there is none.
        @Nullable
        Long find(long diskAddress) {
            Copy copy = byDiskAddress.get(diskAddress);
            return copy == null ? null : copy.address;
        }

        /// A copy was read.
        void markUsed(long diskAddress) {
            Copy copy = byDiskAddress.get(diskAddress);
            if (copy != null) {
                copy.used = true;
            }
        }

        /// Removes the copy of a block that left its address on the disk.
        void removeByDiskAddress(long diskAddress) {
            Copy copy = byDiskAddress.remove(diskAddress);
            if (copy != null) {
                byAddress.remove(copy.address);
            }
        }

        /// It lies elsewhere on the disk.
        void updateDiskAddress(long from, long to) {
            Copy copy = byDiskAddress.remove(from);
            if (copy != null) {
                removeByDiskAddress(to);
                copy.diskAddress = to;
                byDiskAddress.put(to, copy);
            }
        }

        /// A copy lies elsewhere.
        void updateAddress(long from, long to) {
            Copy copy = byAddress.remove(from);
            if (copy != null) {
                copy.address = to;
                byAddress.put(to, copy);
            }
        }

        /// A copy is lost.
        void removeByAddress(long address) {
            Copy copy = byAddress.get(address);
            if (copy != null) {
                removeByDiskAddress(copy.diskAddress);
            }
        }

        /// A copy was used where it lies.
        void markUsedAt(long address) {
            Copy copy = byAddress.get(address);
            if (copy != null) {
                copy.used = true;
            }
        }

        /// A copy on offer.
        private record Candidate(int index, Copy copy, double score) {}

        /// Keeps of a span in front what the store wants, most wanted first and as much as may be; where the store
        /// has no opinion, what was used since it came there or was last on offer.
        void selectKept(ReclaimCandidates offer) {
            List<Candidate> candidates = new ArrayList<>();
            for (int i = 0; i < offer.size(); i++) {
                Copy copy = byAddress.get(offer.address(i));
                if (copy != null) {
                    candidates.add(new Candidate(i, copy, scorer.score(offer.keyHi(i), offer.keyLo(i))));
                }
            }
            candidates.sort(Comparator.comparingDouble(Candidate::score).reversed());
            for (Candidate each : candidates) {
                boolean wanted = Double.isNaN(each.score) ? each.copy.used : each.score > 0;
                if (wanted && offer.keep(each.index)) {
                    each.copy.used = false;
                } else {
                    removeByDiskAddress(each.copy.diskAddress);
                }
            }
        }

        void clear() {
            byDiskAddress.clear();
            byAddress.clear();
        }

        int count() {
            return byAddress.size();
        }
    }
}

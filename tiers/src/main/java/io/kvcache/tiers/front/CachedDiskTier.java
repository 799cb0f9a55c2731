package io.kvcache.tiers.front;

import io.kvcache.core.tier.ForwardingListener;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import io.kvcache.core.tier.Tombstone;
import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// A disk with a faster tier in front of it, as one tier.
///
/// Writes go to both, and count once the disk has them. Reads come from the front if it has the block, else from
/// the disk, and are copied to the front before the store hears of it. Objects go to the disk alone. A block that
/// cannot be read in front is read from the disk, so nothing is lost with the front. Addresses, state and promises
/// are the disk's.
///
/// When the front must give up blocks, it keeps those that the store's policy wants most; it has no order of its
/// own beside the store's. Under a policy without scores it keeps the blocks that were used since they came there:
/// a second chance.
public final class CachedDiskTier implements Tier {

    /// Longest wait for the disk while an operation to the front is in flight: half of the time that a block of 2
    /// MiB takes to a GPU.
    private static final long MAX_DISK_WAIT_NANOS = TimeUnit.MICROSECONDS.toNanos(20);

    private final TierListener listener;
    private final FrontCacheTier frontCacheTier;
    private final Tier disk;
    private final Map<Long, PendingCopy> pendingWrites = new HashMap<>();
    private final Map<Long, TierRead> pendingReads = new HashMap<>();
    private final Deque<TierRead> retryOnDisk = new ArrayDeque<>();
    private final Set<PendingCopy> promoting = new HashSet<>();
    private volatile boolean diskClosed;

    /// A block that the disk has, or will have, while its copy is on its way to the front. The store does not know its
    /// address yet, or is about to use one that it has read: until then the disk may move it, or give it up.
    private static final class PendingCopy {

        private static final long NONE = -1;

        private final TierBlock block;
        private long diskAddress;
        private long address = NONE;
        private int left = 2;

        PendingCopy(TierBlock block, long diskAddress) {
            this.block = block;
            this.diskAddress = diskAddress;
        }
    }

    /// Opens both. While an earlier front is in use, the disk serves without one.
    ///
    /// @param name of the front
    /// @param listener the store
    /// @param retiredTiers earlier fronts, and this one's if it is in use when its disk fails. Pass the same at
    ///     each opening of a disk: a parked front holds its memory until an opening or the end closes it
    /// @throws RuntimeException when one of them cannot be opened; then neither is
    public CachedDiskTier(
            String name,
            Function<TierListener, Tier> disk,
            Function<TierListener, Tier> front,
            TierListener listener,
            RetiredTiers retiredTiers) {
        this.listener = listener;
        this.frontCacheTier = new FrontCacheTier(name, front, listener, retiredTiers);
        this.disk = disk.apply(new DiskListener());
        try {
            this.frontCacheTier.open();
        } catch (RuntimeException refused) {
            if (retiredTiers.isEmpty()) {
                this.disk.close();
                throw refused;
            }
            this.frontCacheTier.scheduleOpen();
        }
    }

    /// Returns the disk, for the caller that opened it.
    public Tier disk() {
        return disk;
    }

    /// Returns the number of blocks that are in front as well. The tier's thread.
    int copyCount() {
        return frontCacheTier.copyIndex().count();
    }

    @Override
    public String name() {
        return disk.name();
    }

    @Override
    public TierState state() {
        return disk.state();
    }

    @Override
    public String cause() {
        return disk.cause();
    }

    @Override
    public long maxBlockBytes() {
        return disk.maxBlockBytes();
    }

    @Override
    public boolean isRecovering() {
        return disk.isRecovering();
    }

    @Override
    public SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag) {
        PendingCopy both = new PendingCopy(block, PendingCopy.NONE);
        pendingWrites.put(tag, both); // before the disk may tell
        SubmitResult submitResult = disk.write(block, pages, tag);
        if (submitResult != SubmitResult.ACCEPTED) {
            pendingWrites.remove(tag);
        } else if (!frontCacheTier.write(block, pages, address -> onWriteEnded(tag, both, address))) {
            onWriteEnded(tag, both, -1);
        }
        return submitResult;
    }

    /// The front has ended its part.
    private void onWriteEnded(long tag, PendingCopy both, long address) {
        both.address = address;
        onWriteEnded(tag, both);
    }

    private void onWriteEnded(long tag, PendingCopy both) {
        if (--both.left > 0) {
            return;
        }
        pendingWrites.remove(tag);
        addCopy(both);
        listener.onWritten(tag, both.diskAddress);
    }

    /// Finds a copy by its address on the disk from now on, or hides it, as no tombstone will ever name it.
    private void addCopy(PendingCopy copy) {
        if (copy.address >= 0 && copy.diskAddress >= 0) {
            frontCacheTier.copyIndex().add(copy.diskAddress, copy.address);
        } else if (copy.address >= 0) {
            frontCacheTier.tombstone(Tombstone.of(copy.block));
        }
    }

    @Override
    public SubmitResult read(TierRead read) {
        if (state().isReadable() && frontCacheTier.read(read, outcome -> onCacheRead(read, outcome))) {
            return SubmitResult.ACCEPTED;
        }
        return readFromDisk(read);
    }

    private SubmitResult readFromDisk(TierRead read) {
        pendingReads.put(read.tag(), read);
        SubmitResult submitResult = disk.read(read);
        if (submitResult != SubmitResult.ACCEPTED) {
            pendingReads.remove(read.tag());
        }
        return submitResult;
    }

    private void onCacheRead(TierRead read, TierRead.Outcome outcome) {
        if (outcome == TierRead.Outcome.SUCCESS) {
            listener.onRead(read.tag(), outcome);
        } else {
            frontCacheTier.copyIndex().removeByDiskAddress(read.address());
            retryOnDisk.add(read);
        }
    }

    private void retryReads() {
        for (TierRead read = retryOnDisk.peek(); read != null; read = retryOnDisk.peek()) {
            SubmitResult submitResult = readFromDisk(read);
            if (submitResult == SubmitResult.RETRY) {
                return;
            }
            retryOnDisk.remove();
            if (submitResult != SubmitResult.ACCEPTED) {
                listener.onRead(read.tag(), TierRead.Outcome.UNREADABLE);
            }
        }
    }

    @Override
    public SubmitResult tombstone(Tombstone tombstone, long tag) {
        SubmitResult submitResult = disk.tombstone(tombstone, tag);
        if (submitResult == SubmitResult.ACCEPTED) {
            frontCacheTier.tombstone(tombstone);
            promoting.stream()
                    .filter(copy -> covers(tombstone, copy.block))
                    .forEach(copy -> copy.diskAddress = PendingCopy.NONE);
        }
        return submitResult;
    }

    private static boolean covers(Tombstone tombstone, TierBlock block) {
        return tombstone.isNamespace()
                ? tombstone.namespaceId() == block.namespaceId()
                : tombstone.keyHi() == block.keyHi() && tombstone.keyLo() == block.keyLo();
    }

    @Override
    public SubmitResult flush(long tag) {
        return disk.flush(tag);
    }

    @Override
    public int tick(long nowNanos, long waitNanos) {
        retryReads();
        boolean busy = frontCacheTier.isBusy() || !retryOnDisk.isEmpty();
        int done = diskClosed ? 0 : disk.tick(nowNanos, busy ? 0 : waitNanos);
        boolean waits = busy && done == 0;
        return done + frontCacheTier.tick(nowNanos, waits ? Math.min(waitNanos, MAX_DISK_WAIT_NANOS) : 0);
    }

    @Override
    public void wake() {
        if (!diskClosed) {
            disk.wake();
        }
        frontCacheTier.wake();
    }

    @Override
    public boolean isIdle() {
        return (diskClosed || disk.isIdle())
                && !frontCacheTier.isBusy()
                && retryOnDisk.isEmpty()
                && pendingWrites.isEmpty()
                && promoting.isEmpty();
    }

    @Override
    public void stop() {
        if (!diskClosed) {
            disk.stop();
        }
    }

    /// Returns the statistics of the disk, with the reads from the front.
    @Override
    public TierStats stats() {
        TierStats of = disk.stats();
        Tier present = frontCacheTier.currentTier();
        if (present == null) {
            return of;
        }
        TierStats before = present.stats();
        return new TierStats(
                of.path() + ", behind " + before.path(),
                of.capacityBytes(),
                of.blocksWritten(),
                of.blockBytesWritten(),
                of.writesFailed(),
                of.allBytesWritten(),
                of.readsGood() + before.readsGood(),
                of.readErrors(),
                of.checksumErrors(),
                of.regionsReclaimed(),
                of.blocksKept(),
                of.blocksRecovered(),
                of.coding());
    }

    /// Closes the front, then the disk, even when the front is still in use.
    ///
    /// @throws IllegalStateException when one of them is in use; the other is closed and stays so,
    ///     and this one can be closed later
    @Override
    public void close() {
        close(false);
    }

    /// {@inheritDoc}
    ///
    /// A front in use is parked.
    @Override
    public void closeAfterFailure() {
        close(true);
    }

    private void close(boolean mayPark) {
        try {
            frontCacheTier.close();
        } catch (IllegalStateException used) {
            closeDisk(used, mayPark);
            if (mayPark && diskClosed && frontCacheTier.retire()) {
                return;
            }
            throw used;
        }
        closeDisk(null, mayPark);
    }

    private void closeDisk(@Nullable IllegalStateException before, boolean failed) {
        if (diskClosed) {
            return;
        }
        try {
            if (failed) {
                disk.closeAfterFailure();
            } else {
                disk.close();
            }
            diskClosed = true;
        } catch (RuntimeException stuck) {
            if (before == null) {
                throw stuck;
            }
            before.addSuppressed(stuck);
        }
    }

    /// The store as the disk sees it.
    private final class DiskListener extends ForwardingListener {

        DiskListener() {
            super(listener);
        }

        @Override
        public void onWritten(long tag, long address) {
            PendingCopy both = pendingWrites.get(tag);
            if (both == null) {
                super.onWritten(tag, address); // a tombstone
                return;
            }
            both.diskAddress = address;
            onWriteEnded(tag, both);
        }

        @Override
        public void onRead(long tag, TierRead.Outcome outcome) {
            TierRead read = pendingReads.remove(tag);
            if (read == null || outcome != TierRead.Outcome.SUCCESS || !promote(read)) {
                super.onRead(tag, outcome);
            }
        }

        /// Copies to the front what was read.
        ///
        /// @return whether the store hears of the read later
        private boolean promote(TierRead read) {
            PendingCopy copy = new PendingCopy(read.block(), read.address());
            boolean copied = frontCacheTier.copyIndex().find(read.address()) == null
                    && frontCacheTier.write(read.block(), read.pages(), address -> onPromoted(read, copy, address));
            if (copied) {
                promoting.add(copy);
            }
            return copied;
        }

        private void onPromoted(TierRead read, PendingCopy copy, long address) {
            promoting.remove(copy);
            copy.address = address;
            addCopy(copy);
            super.onRead(read.tag(), TierRead.Outcome.SUCCESS);
        }

        /// Keeps also what was written and the store has not heard of, as far as there is room; the rest of that was
        /// not written.
        @Override
        public void onReclaim(ReclaimCandidates offer) {
            RecordingCandidates recordingCandidates = new RecordingCandidates(offer, new BitSet());
            super.onReclaim(recordingCandidates);
            Set<Long> written = new HashSet<>();
            pendingWrites.values().forEach(copy -> written.add(copy.diskAddress));
            for (int i = 0; i < offer.size(); i++) {
                if (!recordingCandidates.kept().get(i) && !(written.contains(offer.address(i)) && offer.keep(i))) {
                    onMoved(offer.address(i), PendingCopy.NONE);
                }
            }
        }

        @Override
        public void onMoved(TierBlock block, long from, long to) {
            onMoved(from, to);
            super.onMoved(block, from, to);
        }

        @Override
        public void onLost(TierBlock block, long address) {
            onMoved(address, PendingCopy.NONE);
            super.onLost(block, address);
        }

        /// A block lies elsewhere on the disk, or nowhere.
        private void onMoved(long from, long to) {
            if (to == PendingCopy.NONE) {
                frontCacheTier.copyIndex().removeByDiskAddress(from);
            } else {
                frontCacheTier.copyIndex().updateDiskAddress(from, to);
            }
            Stream.concat(pendingWrites.values().stream(), promoting.stream())
                    .filter(copy -> copy.diskAddress == from)
                    .forEach(copy -> copy.diskAddress = to);
        }
    }

    /// An offer that records the kept entries.
    private record RecordingCandidates(ReclaimCandidates offer, BitSet kept) implements ReclaimCandidates {

        @Override
        public int size() {
            return offer.size();
        }

        @Override
        public long keyHi(int index) {
            return offer.keyHi(index);
        }

        @Override
        public long keyLo(int index) {
            return offer.keyLo(index);
        }

        @Override
        public long address(int index) {
            return offer.address(index);
        }

        @Override
        public boolean keep(int index) {
            boolean kept = offer.keep(index);
            if (kept) {
                this.kept.set(index);
            }
            return kept;
        }
    }

    /// Fronts whose disk has failed while their memory was in use: the disk comes back without one,
    /// and they are closed when that use is over, before another is opened in their place.
    ///
    /// **Threads.** The tier's.
    public static final class RetiredTiers {

        private final Queue<Tier> tiers = new ArrayDeque<>();

        void add(Tier used) {
            tiers.add(used);
        }

        boolean isEmpty() {
            return tiers.isEmpty();
        }

        /// Closes all.
        ///
        /// @throws IllegalStateException while one is in use; it stays, and can be closed later
        public void close() {
            while (!tiers.isEmpty()) {
                tiers.element().close();
                tiers.remove();
            }
        }
    }
}

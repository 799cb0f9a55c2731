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
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// A disk with a faster tier in front of it, as one tier.
///
/// What is written goes to both, and counts once the disk has it; what is read comes from the front if it is
/// there, else from the disk, and is copied to the front before the store hears of it. Objects go to the disk
/// alone. What could not be read in front is read from the disk, so nothing is lost with the front. Places, state
/// and promises are the disk's.
///
/// Of what the front has to give up stays what the store's policy wants most; there is no order of its own beside
/// the store's. Under a policy that has no measure for that stays what was used since it came there: a second chance.
public final class FrontedTier implements Tier {

    /// While something is on its way to the front nobody waits for the disk longer than this: half of what a block of
    /// 2 MiB takes to a GPU.
    private static final long FRONT_WAIT_NANOS = TimeUnit.MICROSECONDS.toNanos(20);

    private final TierListener listener;
    private final Front front;
    private final Tier disk;
    private final Map<Long, Writing> writing = new HashMap<>();
    private final Map<Long, TierRead> reading = new HashMap<>();
    private final Deque<TierRead> again = new ArrayDeque<>();
    private final Set<TierRead> promoting = new HashSet<>();
    private final Set<TierRead> buriedMeanwhile = new HashSet<>();
    private volatile boolean diskClosed;

    /// A write that ends when both have ended.
    private static final class Writing {
        private final TierBlock block;
        private long diskPlace;
        private long place;
        private int left = 2;

        Writing(TierBlock block) {
            this.block = block;
        }
    }

    /// Opens both. While a front from before is in use the disk serves without one.
    ///
    /// @param name of the front
    /// @param listener the store
    /// @param parked fronts from before, and this one's, if it is in use when its disk fails: the same at each
    ///     opening of a disk, as what is parked holds its memory until an opening or the end closes it
    /// @throws RuntimeException when one of them cannot be opened; then neither is
    public FrontedTier(
            String name,
            Function<TierListener, Tier> disk,
            Function<TierListener, Tier> front,
            TierListener listener,
            Parked parked) {
        this.listener = listener;
        this.front = new Front(name, front, listener, parked);
        this.disk = disk.apply(new DiskSide());
        try {
            this.front.open();
        } catch (RuntimeException refused) {
            if (parked.isEmpty()) {
                this.disk.close();
                throw refused;
            }
            this.front.later();
        }
    }

    /// The disk, for those who opened it.
    public Tier disk() {
        return disk;
    }

    /// Blocks that are in front as well. The tier's thread.
    int copies() {
        return front.copies().count();
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
    public boolean recovering() {
        return disk.isRecovering();
    }

    @Override
    public SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag) {
        Writing both = new Writing(block);
        writing.put(tag, both); // before the disk may tell
        SubmitResult taken = disk.write(block, pages, tag);
        if (taken != SubmitResult.ACCEPTED) {
            writing.remove(tag);
        } else if (!front.write(block, pages, place -> ended(tag, both, place))) {
            ended(tag, both, -1);
        }
        return taken;
    }

    /// The front has ended its part.
    private void ended(long tag, Writing both, long place) {
        both.place = place;
        ended(tag, both);
    }

    private void ended(long tag, Writing both) {
        if (--both.left > 0) {
            return;
        }
        writing.remove(tag);
        if (both.place >= 0 && both.diskPlace >= 0) {
            front.copies().add(both.diskPlace, both.place);
        } else if (both.place >= 0) {
            front.bury(Tombstone.of(both.block)); // no burial will ever be told of it
        }
        listener.onWritten(tag, both.diskPlace);
    }

    @Override
    public SubmitResult read(TierRead read) {
        if (state().isReadable() && front.read(read, outcome -> readInFront(read, outcome))) {
            return SubmitResult.ACCEPTED;
        }
        return fromDisk(read);
    }

    private SubmitResult fromDisk(TierRead read) {
        reading.put(read.tag(), read);
        SubmitResult taken = disk.read(read);
        if (taken != SubmitResult.ACCEPTED) {
            reading.remove(read.tag());
        }
        return taken;
    }

    private void readInFront(TierRead read, TierRead.Outcome outcome) {
        if (outcome == TierRead.Outcome.SUCCESS) {
            listener.onRead(read.tag(), outcome);
        } else {
            front.copies().forget(read.address());
            again.add(read);
        }
    }

    private void readAgain() {
        for (TierRead read = again.peek(); read != null; read = again.peek()) {
            SubmitResult taken = fromDisk(read);
            if (taken == SubmitResult.RETRY) {
                return;
            }
            again.remove();
            if (taken != SubmitResult.ACCEPTED) {
                listener.onRead(read.tag(), TierRead.Outcome.UNREADABLE);
            }
        }
    }

    @Override
    public SubmitResult bury(Tombstone burial, long tag) {
        SubmitResult taken = disk.tombstone(burial, tag);
        if (taken == SubmitResult.ACCEPTED) {
            front.bury(burial);
            promoting.stream().filter(read -> means(burial, read.block())).forEach(buriedMeanwhile::add);
        }
        return taken;
    }

    private static boolean means(Tombstone burial, TierBlock block) {
        return burial.isNamespace()
                ? burial.namespaceId() == block.namespaceId()
                : burial.keyHi() == block.keyHi() && burial.keyLo() == block.keyLo();
    }

    @Override
    public SubmitResult flush(long tag) {
        return disk.flush(tag);
    }

    @Override
    public int tick(long nowNanos, long waitNanos) {
        readAgain();
        boolean busy = front.busy() || !again.isEmpty();
        int done = diskClosed ? 0 : disk.tick(nowNanos, busy ? 0 : waitNanos);
        boolean waits = busy && done == 0;
        return done + front.tick(nowNanos, waits ? Math.min(waitNanos, FRONT_WAIT_NANOS) : 0);
    }

    @Override
    public void wake() {
        if (!diskClosed) {
            disk.wake();
        }
        front.wake();
    }

    @Override
    public boolean idle() {
        return (diskClosed || disk.isIdle())
                && !front.busy()
                && again.isEmpty()
                && writing.isEmpty()
                && promoting.isEmpty();
    }

    @Override
    public void stop() {
        if (!diskClosed) {
            disk.stop();
        }
    }

    /// The disk's, with what was read in front.
    @Override
    public TierStats stats() {
        TierStats of = disk.stats();
        Tier present = front.present();
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
                of.blocksRecovered());
    }

    /// Lets go of the front, then of the disk, also when somebody still uses the front.
    ///
    /// @throws IllegalStateException when one of them is in use; the other is closed and stays so,
    ///     and this one can be closed later
    @Override
    public void close() {
        close(false);
    }

    /// {@inheritDoc}
    ///
    /// A front that somebody uses is parked.
    @Override
    public void leave() {
        close(true);
    }

    private void close(boolean mayPark) {
        try {
            front.close();
        } catch (IllegalStateException used) {
            closeDisk(used);
            if (mayPark && diskClosed && front.park()) {
                return;
            }
            throw used;
        }
        closeDisk(null);
    }

    private void closeDisk(@Nullable IllegalStateException before) {
        if (diskClosed) {
            return;
        }
        try {
            disk.close();
            diskClosed = true;
        } catch (RuntimeException stuck) {
            if (before == null) {
                throw stuck;
            }
            before.addSuppressed(stuck);
        }
    }

    /// The store as the disk sees it.
    private final class DiskSide extends ForwardingListener {

        DiskSide() {
            super(listener);
        }

        @Override
        public void written(long tag, long place) {
            Writing both = writing.get(tag);
            if (both == null) {
                super.onWritten(tag, place); // a burial
                return;
            }
            both.diskPlace = place;
            ended(tag, both);
        }

        @Override
        public void read(long tag, TierRead.Outcome outcome) {
            TierRead read = reading.remove(tag);
            boolean copied = read != null
                    && outcome == TierRead.Outcome.SUCCESS
                    && front.copies().of(read.address()) == null
                    && front.write(read.block(), read.pages(), place -> promoted(read, place));
            if (copied) {
                promoting.add(read);
            } else {
                super.onRead(tag, outcome);
            }
        }

        private void promoted(TierRead read, long place) {
            promoting.remove(read);
            if (buriedMeanwhile.remove(read)) {
                front.bury(Tombstone.of(read.block()));
            } else if (place >= 0) {
                front.copies().add(read.address(), place);
            }
            super.onRead(read.tag(), TierRead.Outcome.SUCCESS);
        }

        @Override
        public void offered(ReclaimCandidates offer) {
            Watched watched = new Watched(offer, new BitSet());
            super.onReclaim(watched);
            for (int i = 0; i < offer.size(); i++) {
                if (!watched.kept().get(i)) {
                    front.copies().forget(offer.address(i));
                }
            }
        }

        @Override
        public void moved(TierBlock block, long from, long to) {
            front.copies().movedOnDisk(from, to);
            super.onMoved(block, from, to);
        }

        @Override
        public void lost(TierBlock block, long place) {
            front.copies().forget(place);
            super.onLost(block, place);
        }
    }
}

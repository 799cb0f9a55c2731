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
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
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
final class Front implements TierListener {

    private static final Logger LOG = System.getLogger(Front.class.getName());

    static final long FIRST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(5);
    static final long LAST_PAUSE_NANOS = TimeUnit.MINUTES.toNanos(10);

    private final String name;
    private final Function<TierListener, Tier> opener;
    private final TierListener store;
    private final Copies copies;
    private final Parked parked;
    private final Map<Long, Consumer<Long>> writes = new HashMap<>();
    private final Map<Long, Consumer<TierRead.Outcome>> reads = new HashMap<>();
    private volatile @Nullable Tier tier;
    private long nextTag;
    private long pauseNanos = FIRST_PAUSE_NANOS;
    private long againAt = Long.MIN_VALUE / 2;
    private boolean out;
    private boolean failed;

    /// @param opener opens the tier in front
    /// @param parked fronts from before, of which none may be there when this one is opened
    Front(String name, Function<TierListener, Tier> opener, TierListener store, Parked parked) {
        this.parked = parked;
        this.name = name;
        this.opener = opener;
        this.store = store;
        copies = new Copies(store::score);
    }

    Copies copies() {
        return copies;
    }

    /// @throws RuntimeException when it cannot be opened
    void open() {
        parked.close();
        tier = opener.apply(this);
        failed = false;
    }

    /// Has it be opened by a later tick.
    void later() {
        LOG.log(Level.INFO, "{0} is still used as it was before its disk failed: the disk is back without it", name);
        out = true;
    }

    /// Leaves it to be closed when nobody uses it any more, if nothing is on its way there.
    ///
    /// @return whether it was
    boolean park() {
        Tier present = tier;
        if (present == null || busy()) {
            return false;
        }
        parked.add(present);
        tier = null;
        return true;
    }

    private boolean serves() {
        Tier present = tier;
        return present != null && present.state() == TierState.SERVING;
    }

    /// Copies a block, if that can be now.
    ///
    /// @param then hears the place, or -1; the memory is its owner's again then
    /// @return whether it will hear
    boolean write(TierBlock block, List<MemorySegment> pages, Consumer<Long> then) {
        Tier present = tier;
        if (present == null || !serves() || block.isObject() || block.bytes() > present.maxBlockBytes()) {
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
        Long place = copies.of(read.address());
        if (present == null || place == null || !serves()) {
            return false;
        }
        long tag = ++nextTag;
        switch (present.read(new TierRead(read.block(), place, read.pages(), tag))) {
            case ACCEPTED -> {
                reads.put(tag, then);
                copies.used(read.address());
                return true;
            }
            case GONE -> copies.forget(read.address());
            case RETRY, REJECTED -> {}
        }
        return false;
    }

    /// Has it not be found by those who ask for it here.
    void bury(Tombstone burial) {
        Tier present = tier;
        if (present != null && serves()) {
            long tag = ++nextTag;
            if (present.tombstone(burial, tag) == SubmitResult.ACCEPTED) {
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
            return out && nowNanos - againAt >= 0 ? reopen(nowNanos) : 0;
        }
        int done = present.tick(nowNanos, waitNanos);
        if (present.state() == TierState.FAILED) {
            copies.clear();
            if (!failed) {
                failed = true;
                LOG.log(Level.WARNING, "{0} is taken out, and its disk serves on: {1}", name, present.cause());
            }
            if (present.isIdle() && nowNanos - againAt >= 0) {
                takeOut(nowNanos);
            }
        } else if (done > 0) {
            pauseNanos = FIRST_PAUSE_NANOS;
        }
        return done;
    }

    private void takeOut(long nowNanos) {
        try {
            close();
            out = true;
        } catch (IllegalStateException used) {
            LOG.log(Level.WARNING, name + " failed, and cannot be closed yet", used);
        }
        putOff(nowNanos);
    }

    private void putOff(long nowNanos) {
        againAt = nowNanos + pauseNanos;
        pauseNanos = Math.min(2 * pauseNanos, LAST_PAUSE_NANOS);
    }

    private int reopen(long nowNanos) {
        try {
            open();
            out = false;
            LOG.log(Level.INFO, "{0} is back", name);
            return 1;
        } catch (RuntimeException refused) {
            LOG.log(Level.DEBUG, "not back yet", refused);
            putOff(nowNanos);
            return 0;
        }
    }

    /// Whether something is on its way there. One that failed may be in somebody's use for long,
    /// with nothing to do about it.
    boolean busy() {
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
    Tier present() {
        return tier;
    }

    /// Lets go of it.
    ///
    /// @throws IllegalStateException when something is on its way there, or somebody uses its memory: it stays
    ///     open then
    void close() {
        Tier present = tier;
        copies.clear();
        if (present != null) {
            present.close();
            tier = null;
        }
    }

    @Override
    public void written(long tag, long place) {
        Consumer<Long> then = writes.remove(tag);
        if (then != null) {
            then.accept(place);
        }
    }

    @Override
    public void read(long tag, TierRead.Outcome outcome) {
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
    public void offered(ReclaimCandidates offer) {
        copies.choose(offer);
    }

    @Override
    public void moved(TierBlock block, long from, long to) {
        copies.moved(from, to);
    }

    @Override
    public void lost(TierBlock block, long place) {
        copies.lost(place);
    }

    @Override
    public void used(TierBlock block, long place) {
        copies.usedThere(place);
        store.onUsed(block, place);
    }

    /// What it held before counts for nothing: only what goes to the disk in one go with it does.
    @Override
    public void recovered(TierBlock block, long place) {}

    @Override
    public void buried(long keyHi, long keyLo) {}

    @Override
    public void recoveryEnded() {}

    @Override
    public void flushed(long tag, boolean durable) {}
}

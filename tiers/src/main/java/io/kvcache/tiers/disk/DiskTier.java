package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.TierStats;
import io.kvcache.core.tier.Tombstone;
import io.kvcache.tiers.device.BlockDevice;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// A [DiskLog] over one device, as a [Tier].
///
/// Between the two it translates namespaces: the store and the log number them each on its own. A namespace that
/// the log does not know yet is registered when the first block of it comes, which waits until that is done.
public final class DiskTier implements Tier {

    private static final Logger LOG = System.getLogger(DiskTier.class.getName());

    /// What others read of the statistics is no older while there is anything to do.
    private static final long STATS_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// How long closing waits for what is on its way; the device has a limit of its own after that.
    private static final long CLOSING_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final String name;
    private final BlockDevice device;
    private final Beneath beneath;
    private final DiskLog log;
    private final Numbers numbers;
    private final TierListener listener;
    private final BitSet buriedNamespaces = new BitSet();
    private volatile TierState state = TierState.OPENING;
    private volatile String cause = "";
    private volatile TierStats stats;
    private volatile boolean statsWanted;
    private boolean changed;
    private long statsAt;
    private long now;

    /// Begins to open a tier.
    ///
    /// @param beneath is the tier's from here on
    public DiskTier(String name, Beneath beneath, DiskLogConfig config, TierListener listener) {
        this.name = name;
        this.device = beneath.device;
        this.beneath = beneath;
        numbers = new Numbers(listener);
        log = new DiskLog(device, config, new Surroundings(new Index(), new Sink(), this::logMemory, beneath.checking));
        stats = TierStats.empty(device.describe(), device.size());
        this.listener = listener;
    }

    /// What a tier stands on, which it closes with itself.
    ///
    /// @param owner closes the device: the device itself, or the directory that it is a file of
    /// @param checking computes checksums beside the tier's thread, until the tier is closed; or null
    public record Beneath(
            BlockDevice device,
            AutoCloseable owner,
            DiskMemory memory,
            @Nullable Executor checking) {

        /// One where the tier's thread computes checksums.
        public Beneath(BlockDevice device, AutoCloseable owner, DiskMemory memory) {
            this(device, owner, memory, null);
        }
    }

    private MemorySegment logMemory(long bytes) {
        return beneath.memory.take(bytes);
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public TierState state() {
        return state;
    }

    @Override
    public String cause() {
        return cause;
    }

    @Override
    public long maxBlockBytes() {
        return log.maxEntryBytes();
    }

    @Override
    public boolean recovering() {
        return log.recovering();
    }

    @Override
    public SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag) {
        int number = numbers.ofStore(block.namespaceId());
        if (number < 0) {
            return register(block.namespaceId());
        }
        return taken(log.append(entry(block, number), pages, tag));
    }

    private SubmitResult register(int namespaceId) {
        Namespace namespace = listener.namespace(namespaceId);
        int number = log.namespaceNumber(namespace);
        if (number >= 0) {
            numbers.pair(namespaceId, number);
            return SubmitResult.RETRY;
        }
        return log.register(namespace) == Admission.TAKEN ? SubmitResult.RETRY : SubmitResult.REJECTED;
    }

    /// {@inheritDoc}
    ///
    /// What the log has nothing of needs no burial: it is refused.
    @Override
    public SubmitResult bury(Tombstone burial, long tag) {
        int number = numbers.ofStore(burial.namespaceId());
        if (number < 0) {
            return register(burial.namespaceId());
        }
        DiskEntry tombstone = burial.isNamespace()
                ? DiskEntry.tombstone(number)
                : DiskEntry.tombstone(burial.keyHi(), burial.keyLo(), number);
        return taken(log.bury(tombstone, tag));
    }

    @Override
    public SubmitResult read(TierRead read) {
        return taken(log.read(new BlockRead(read.address(), read.bytes(), read.checksum(), read.pages(), read.tag())));
    }

    @Override
    public SubmitResult flush(long tag) {
        return taken(log.flush(tag));
    }

    @Override
    public int tick(long nowNanos, long waitNanos) {
        now = nowNanos;
        int done = log.tick(nowNanos, waitNanos);
        changed |= done > 0;
        publish();
        return done;
    }

    private void publish() {
        TierState present = stateOf(log.state());
        cause = log.cause();
        state = present;
        boolean due = changed && now - statsAt >= STATS_NANOS;
        if ((statsWanted || due) && log.served()) {
            statsWanted = false;
            changed = false;
            statsAt = now;
            stats = statsOf(log.stats());
        }
    }

    @Override
    public void wake() {
        device.wake();
    }

    @Override
    public boolean idle() {
        return log.idle();
    }

    @Override
    public void stop() {
        log.stop();
        statsWanted = true;
        publish();
    }

    @Override
    public TierStats stats() {
        statsWanted = true;
        return stats;
    }

    private TierStats statsOf(DiskLogStats of) {
        return new TierStats(
                device.describe(),
                device.size(),
                of.appended(),
                of.appendedBytes(),
                of.appendsFailed(),
                of.writtenBytes().values().stream().mapToLong(Long::longValue).sum(),
                of.reads().good(),
                of.reads().ioErrors(),
                of.reads().checksumErrors(),
                of.reclaimed().regions(),
                of.reclaimed().kept(),
                of.recovered().entries());
    }

    /// Waits a bounded time for what is on its way, and closes the device.
    ///
    /// @throws IllegalStateException when the device does not end what is on its way: it stays open then
    @Override
    public void close() {
        stop();
        for (long waited = 0; !log.idle() && waited < CLOSING_NANOS; waited += TimeUnit.MILLISECONDS.toNanos(1)) {
            log.tick(now, TimeUnit.MILLISECONDS.toNanos(1));
        }
        try {
            beneath.owner.close();
        } catch (RuntimeException stuck) {
            throw stuck; // the device still uses its memory
        } catch (Exception failed) {
            LOG.log(Level.WARNING, name + " did not close", failed);
        }
        beneath.memory.close();
    }

    /// For a tier that did not get to serve: the log, which knows why.
    public DiskLog log() {
        return log;
    }

    private static SubmitResult taken(Admission admission) {
        return switch (admission) {
            case TAKEN -> SubmitResult.ACCEPTED;
            case FULL -> SubmitResult.RETRY;
            case STALE -> SubmitResult.GONE;
            case REFUSED -> SubmitResult.REJECTED;
        };
    }

    private static TierState stateOf(LogState state) {
        return switch (state) {
            case OPENING -> TierState.OPENING;
            case REFUSED -> TierState.REFUSED;
            case SERVING -> TierState.SERVING;
            case READ_ONLY -> TierState.READ_ONLY;
            case FAILED -> TierState.FAILED;
            case STOPPED -> TierState.STOPPED;
        };
    }

    private static DiskEntry entry(TierBlock block, int number) {
        int identity = number << Numbers.SHIFT | (block.isObject() ? DiskEntry.OBJECT : 0);
        return new DiskEntry(
                block.keyHi(),
                block.keyLo(),
                block.parentHi(),
                block.parentLo(),
                identity,
                block.depth(),
                0,
                block.bytes(),
                block.checksum(),
                block.engineHash());
    }

    private TierBlock block(DiskEntry entry, int namespaceId) {
        return new TierBlock(
                entry.keyHi(),
                entry.keyLo(),
                entry.parentHi(),
                entry.parentLo(),
                namespaceId,
                entry.isObject(),
                entry.depth(),
                entry.bytes(),
                entry.checksum(),
                entry.engineHash());
    }

    private int namespaceId(DiskEntry entry) {
        return numbers.ofLog(entry.namespace(), log::namespaces);
    }

    /// What the log asks of the store, in the store's words.
    private final class Index implements DiskIndex {

        @Override
        public void recovered(DiskEntry entry, long place) {
            int id = buriedNamespaces.get(entry.namespace()) ? -1 : namespaceId(entry);
            if (id >= 0) {
                listener.onRecovered(block(entry, id), place);
            }
        }

        @Override
        public void buried(DiskEntry tombstone) {
            if (tombstone.isOfNamespace()) {
                buriedNamespaces.set(tombstone.namespace());
            } else {
                listener.onTombstone(tombstone.keyHi(), tombstone.keyLo());
            }
        }

        @Override
        public void recoveryEnded() {
            buriedNamespaces.clear();
            DiskLogStats.Recovered recovered = log.stats().recovered();
            if (recovered.lost() > 0 || recovered.missing() > 0) {
                LOG.log(
                        Level.WARNING,
                        "{0} lacks {1} entries and {2} whole regions that were durable: metadata in the file is damaged. {3} regions were"
                                + " forgotten, as what they hold may have been deleted or replaced by what is lost."
                                + " Check the disk (dmesg, SMART)",
                        name,
                        recovered.lost(),
                        recovered.missing(),
                        recovered.forgotten());
            }
            listener.onRecoveryEnded();
        }

        @Override
        public void offered(RegionOffer offer) {
            listener.onReclaim(new Offer(offer));
        }

        @Override
        public void moved(DiskEntry entry, long from, long to) {
            int id = namespaceId(entry);
            if (id >= 0) {
                listener.onMoved(block(entry, id), from, to);
            }
        }

        @Override
        public void lost(DiskEntry entry, long place) {
            int id = namespaceId(entry);
            if (id >= 0) {
                listener.onLost(block(entry, id), place);
            }
        }
    }

    /// What the log tells the store, in the store's words.
    private final class Sink implements DiskLogSink {

        @Override
        public void registered(Namespace namespace, int number) {
            int id = listener.namespaceId(namespace);
            if (id >= 0) {
                numbers.pair(id, number);
            }
        }

        @Override
        public void appended(long tag, long place) {
            listener.onWritten(tag, place);
        }

        @Override
        public void read(long tag, ReadOutcome outcome) {
            listener.onRead(
                    tag,
                    switch (outcome) {
                        case GOOD -> TierRead.Outcome.SUCCESS;
                        case IO_ERROR -> TierRead.Outcome.UNREADABLE;
                        case CHECKSUM_ERROR -> TierRead.Outcome.CORRUPT;
                    });
        }

        @Override
        public void flushed(long tag, boolean durable) {
            listener.onFlushed(tag, durable);
        }
    }
}

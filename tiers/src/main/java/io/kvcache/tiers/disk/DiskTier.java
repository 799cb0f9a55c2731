package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.HostMemory;
import io.kvcache.core.memory.HostMemorySource;
import io.kvcache.core.tier.ReclaimCandidates;
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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// A [DiskLog] over one device, as a [Tier].
///
/// Between the two it translates namespaces: the store and the log number them each on its own. A namespace that
/// the log does not know yet is registered when the first block of it comes, which waits until that is done.
public final class DiskTier implements Tier {

    private static final Logger LOG = System.getLogger(DiskTier.class.getName());

    /// What others read of the statistics is no older while there is anything to do.
    private static final long STATS_INTERVAL_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// How long closing waits for what is on its way; the device has a limit of its own after that.
    private static final long CLOSE_TIMEOUT_NANOS = TimeUnit.SECONDS.toNanos(5);

    private final String name;
    private final BlockDevice device;
    private final Resources resources;
    private final List<HostMemory> logMemory = new ArrayList<>();
    private final DiskLog log;
    private final NamespaceIds namespaceIds;
    private final TierListener listener;
    private final BitSet tombstonedNamespaces = new BitSet();
    private volatile TierState state = TierState.OPENING;
    private volatile String cause = "";
    private volatile TierStats stats;
    private volatile boolean statsWanted;
    private boolean changed;
    private long statsNanos;
    private long now;

    /// Begins to open a tier.
    ///
    /// @param resources is the tier's from here on
    public DiskTier(String name, Resources resources, DiskLogConfig config, TierListener listener) {
        this.name = name;
        this.device = resources.device;
        this.resources = resources;
        namespaceIds = new NamespaceIds(listener);
        log = new DiskLog(device, config, new StoreListener(), this::allocateLogMemory, resources.checksumExecutor);
        stats = TierStats.empty(device.describe(), device.size());
        this.listener = listener;
    }

    /// What a tier stands on, which it closes with itself.
    ///
    /// @param memory gives what the log works with, beside the blocks; the tier closes what it took
    /// @param owner closes the device: the device itself, or the directory that it is a file of
    /// @param checksumExecutor computes checksums beside the tier's thread, until the tier is closed; or null
    public record Resources(
            BlockDevice device,
            AutoCloseable owner,
            HostMemorySource memory,
            @Nullable Executor checksumExecutor) {

        /// One where the tier's thread computes checksums.
        public Resources(BlockDevice device, AutoCloseable owner, HostMemorySource memory) {
            this(device, owner, memory, null);
        }
    }

    private MemorySegment allocateLogMemory(long bytes) {
        HostMemory memory = resources.memory.reserve("disk-log", bytes);
        logMemory.add(memory);
        return memory.segment();
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
    public boolean isRecovering() {
        return log.isRecovering();
    }

    @Override
    public SubmitResult write(TierBlock block, List<MemorySegment> pages, long tag) {
        int number = namespaceIds.toLogId(block.namespaceId());
        if (number < 0) {
            return register(block.namespaceId());
        }
        return log.append(entry(block, number), pages, tag);
    }

    private SubmitResult register(int namespaceId) {
        Namespace namespace = listener.namespace(namespaceId);
        int number = log.namespaceId(namespace);
        if (number >= 0) {
            namespaceIds.map(namespaceId, number);
            return SubmitResult.RETRY;
        }
        return log.register(namespace) == SubmitResult.ACCEPTED ? SubmitResult.RETRY : SubmitResult.REJECTED;
    }

    /// {@inheritDoc}
    ///
    /// What the log has nothing of needs no burial: it is refused.
    @Override
    public SubmitResult tombstone(Tombstone burial, long tag) {
        int number = namespaceIds.toLogId(burial.namespaceId());
        if (number < 0) {
            return register(burial.namespaceId());
        }
        DiskEntry tombstone = burial.isNamespace()
                ? DiskEntry.tombstone(number)
                : DiskEntry.tombstone(burial.keyHi(), burial.keyLo(), number);
        return log.appendTombstone(tombstone, tag);
    }

    @Override
    public SubmitResult read(TierRead read) {
        return log.read(read.address(), read.bytes(), read.checksum(), read.pages(), read.tag());
    }

    @Override
    public SubmitResult flush(long tag) {
        return log.flush(tag);
    }

    @Override
    public int tick(long nowNanos, long waitNanos) {
        now = nowNanos;
        int done = log.tick(nowNanos, waitNanos);
        changed |= done > 0;
        publishState();
        return done;
    }

    private void publishState() {
        TierState present = log.state();
        cause = log.cause();
        state = present;
        boolean due = changed && now - statsNanos >= STATS_INTERVAL_NANOS;
        if ((statsWanted || due) && log.hasStats()) {
            statsWanted = false;
            changed = false;
            statsNanos = now;
            stats = toTierStats(log.stats());
        }
    }

    @Override
    public void wake() {
        device.wake();
    }

    @Override
    public boolean isIdle() {
        return log.isIdle();
    }

    @Override
    public void stop() {
        log.stop();
        statsWanted = true;
        publishState();
    }

    @Override
    public TierStats stats() {
        statsWanted = true;
        return stats;
    }

    private TierStats toTierStats(DiskLogStats of) {
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
        for (long waited = 0;
                !log.isIdle() && waited < CLOSE_TIMEOUT_NANOS;
                waited += TimeUnit.MILLISECONDS.toNanos(1)) {
            log.tick(now, TimeUnit.MILLISECONDS.toNanos(1));
        }
        try {
            resources.owner.close();
        } catch (RuntimeException stuck) {
            throw stuck; // the device still uses its memory
        } catch (Exception failed) {
            LOG.log(Level.WARNING, name + " did not close", failed);
        }
        logMemory.forEach(HostMemory::close);
        logMemory.clear();
    }

    /// For a tier that did not get to serve: the log, which knows why.
    public DiskLog log() {
        return log;
    }

    private static DiskEntry entry(TierBlock block, int number) {
        int identity = number << NamespaceIds.SHIFT | (block.isObject() ? DiskEntry.OBJECT : 0);
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
        return namespaceIds.toStoreId(entry.namespace(), log::namespaces);
    }

    /// What the log asks and tells of the store, in the store's words.
    private final class StoreListener implements LogListener {

        @Override
        public void onRecovered(DiskEntry entry, long address) {
            int id = tombstonedNamespaces.get(entry.namespace()) ? -1 : namespaceId(entry);
            if (id >= 0) {
                listener.onRecovered(block(entry, id), address);
            }
        }

        @Override
        public void onTombstone(DiskEntry tombstone) {
            if (tombstone.isNamespaceTombstone()) {
                tombstonedNamespaces.set(tombstone.namespace());
            } else {
                listener.onTombstone(tombstone.keyHi(), tombstone.keyLo());
            }
        }

        @Override
        public void onRecoveryEnded() {
            tombstonedNamespaces.clear();
            DiskLogStats.Recovered recovered = log.stats().recovered();
            if (recovered.lost() > 0 || recovered.missingRegions() > 0) {
                LOG.log(
                        Level.WARNING,
                        "{0} lacks {1} entries and {2} whole regions that were durable: metadata in the file is damaged. {3} regions were"
                                + " forgotten, as what they hold may have been deleted or replaced by what is lost."
                                + " Check the disk (dmesg, SMART)",
                        name,
                        recovered.lost(),
                        recovered.missingRegions(),
                        recovered.discardedRegions());
            }
            listener.onRecoveryEnded();
        }

        @Override
        public void onReclaim(ReclaimCandidates offer) {
            listener.onReclaim(offer);
        }

        @Override
        public void onMoved(DiskEntry entry, long from, long to) {
            int id = namespaceId(entry);
            if (id >= 0) {
                listener.onMoved(block(entry, id), from, to);
            }
        }

        @Override
        public void onLost(DiskEntry entry, long address) {
            int id = namespaceId(entry);
            if (id >= 0) {
                listener.onLost(block(entry, id), address);
            }
        }

        @Override
        public void onNamespaceRegistered(Namespace namespace, int number) {
            int id = listener.namespaceId(namespace);
            if (id >= 0) {
                namespaceIds.map(id, number);
            }
        }

        @Override
        public void onAppended(long tag, long address) {
            listener.onWritten(tag, address);
        }

        @Override
        public void onRead(long tag, TierRead.Outcome outcome) {
            listener.onRead(tag, outcome);
        }

        @Override
        public void onFlushed(long tag, boolean durable) {
            listener.onFlushed(tag, durable);
        }
    }

    /// Which number of the store's stands for which of the log's, both ways. Owned by the log's thread.
    private static final class NamespaceIds {

        /// Where an entry's identity has the number of its namespace.
        static final int SHIFT = 16;

        private static final int UNKNOWN = -1;

        /// The store did not take the namespace.
        private static final int REFUSED = -2;

        private final TierListener store;
        private int[] logIds = new int[0];
        private int[] storeIds = new int[0];

        NamespaceIds(TierListener store) {
            this.store = store;
        }

        void map(int ofStore, int ofLog) {
            logIds = with(logIds, ofStore, ofLog);
            storeIds = with(storeIds, ofLog, ofStore);
        }

        /// The log's number of a namespace of the store's, or -1 when the log has none yet.
        int toLogId(int namespaceId) {
            return namespaceId < logIds.length ? logIds[namespaceId] : UNKNOWN;
        }

        /// The store's number of a namespace of the log's, registered now if need be; or negative when
        /// the store does not take it.
        int toStoreId(int number, Supplier<List<Namespace>> namespaces) {
            int known = number < storeIds.length ? storeIds[number] : UNKNOWN;
            if (known != UNKNOWN) {
                return known;
            }
            int id = store.namespaceId(namespaces.get().get(number));
            if (id < 0) {
                storeIds = with(storeIds, number, REFUSED);
                return REFUSED;
            }
            map(id, number);
            return id;
        }

        private static int[] with(int[] array, int index, int value) {
            int[] larger = array;
            if (index >= array.length) {
                larger = Arrays.copyOf(array, Math.max(index + 1, 2 * array.length));
                Arrays.fill(larger, array.length, larger.length, UNKNOWN);
            }
            larger[index] = value;
            return larger;
        }
    }
}

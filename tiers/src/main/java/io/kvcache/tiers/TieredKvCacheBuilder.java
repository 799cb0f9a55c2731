package io.kvcache.tiers;

import io.kvcache.core.cost.PrefillCost;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.StoreEvents.EventLog;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierSource;
import io.kvcache.core.tree.RecordLayout;
import io.kvcache.tiers.StoreContext.AccessListeners;
import io.kvcache.tiers.StoreContext.OpenHandles;
import io.kvcache.tiers.TieredKvCache.SharedHostMemory;
import io.kvcache.tiers.TieredKvCache.StoreShutdown;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.memory.MemoryReservationException;
import io.kvcache.tiers.memory.PagePrefaulter;
import io.kvcache.tiers.memory.PagePrefaulter.BackgroundPrefaulter;
import io.kvcache.tiers.memory.SharedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.StagingLimits;
import io.kvcache.tiers.os.SystemClock;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Settings of an embedded store. Every setting has a default that works on any machine.
///
/// Not safe for several threads.
public final class TieredKvCacheBuilder {

    private static final long DEFAULT_HOST_BYTES = 1L << 30;
    private static final Duration DEFAULT_FLUSH_ON_CLOSE = Duration.ofSeconds(10);
    private static final Duration MAX_FLUSH_ON_CLOSE = Duration.ofDays(1);

    private long hostBytes = DEFAULT_HOST_BYTES;
    private int records;
    private EvictionPolicyFactory policy = PolicyKind.IMPORTANCE;
    private int eventCapacity = EventLog.DEFAULT_CAPACITY;
    private MemoryOptions memoryOptions = MemoryOptions.defaults();
    private @Nullable HostMemorySource memory;
    private @Nullable Path sharedFolder;
    private Set<String> sharedTenants = Set.of();
    private StagingLimits staging = StagingLimits.DEFAULTS;
    private boolean prefaultInBackground = true;
    private boolean prefaultAtStart;
    private boolean checkedSegments = assertionsEnabled();
    private boolean failOnLeak;
    private boolean trackOpenHandles;
    private Duration closeWait = Duration.ofSeconds(10);
    private Duration flushOnClose = DEFAULT_FLUSH_ON_CLOSE;
    private Clock clock = SystemClock.INSTANCE;
    private final List<DiskOptions> disks = new ArrayList<>();
    private final List<TierSource> others = new ArrayList<>();
    private AdmissionKind admission = AdmissionKind.SECOND_HIT;
    private double gain = AdmissionKind.defaultGain();
    private @Nullable PrefillCost prefill;
    private boolean prefetch;

    TieredKvCacheBuilder() {}

    /// Sets the host memory for blocks and objects, 32 MiB and up, used in whole slabs. Default: 1 GiB.
    ///
    /// @throws IllegalArgumentException when less than 32 MiB
    public TieredKvCacheBuilder hostBytes(long bytes) {
        if (bytes < SlabPool.MIN_BYTES) {
            throw new IllegalArgumentException(
                    "hostBytes is " + bytes + "; a store takes " + SlabPool.MIN_BYTES + " and up");
        }
        hostBytes = bytes;
        return this;
    }

    /// Sets how many blocks and objects can be known at once. Default: one for 16 KiB of host memory.
    public TieredKvCacheBuilder records(int count) {
        if (count < 1) {
            throw new IllegalArgumentException("records is " + count + "; it takes 1 and up");
        }
        records = count;
        return this;
    }

    /// Sets the eviction policy. Default: [PolicyKind#IMPORTANCE]. With [PolicyKind#LRU] no block is declined.
    public TieredKvCacheBuilder policy(EvictionPolicyFactory kind) {
        policy = Objects.requireNonNull(kind, "policy");
        return this;
    }

    /// Sets the number of events kept for replay, a power of two. Default: 65,536.
    public TieredKvCacheBuilder eventCapacity(int events) {
        eventCapacity = events;
        return this;
    }

    /// Sets the kind of host memory.
    public TieredKvCacheBuilder memory(MemoryOptions options) {
        memoryOptions = options;
        return this;
    }

    /// Sets the source of host memory, for tests and for embedders that bring their own.
    public TieredKvCacheBuilder memory(HostMemorySource source) {
        memory = source;
        return this;
    }

    /// Puts blocks, objects and the index in files that processes of this user on this host may map read-only. So
    /// a remote cache on the same host reads without asking, and without a copy. Takes the place of [#memory].
    ///
    /// A mapping gives away all of its contents: a client that may map it can read everything in this store.
    ///
    /// @param folder folder in an in-memory file system, such as one under `/dev/shm`. It is created, with mode
    ///     0700, when it is missing, and used by one store at a time. Files left there by a killed store are
    ///     removed by the next one
    /// @param tenants tenants that may read each other, and so may map it; clients that may act for all tenants
    ///     may in any case. Unless empty, namespaces of other tenants are refused here: each trust domain has a
    ///     store of its own
    public TieredKvCacheBuilder shareMemory(Path folder, Set<String> tenants) {
        sharedFolder = folder;
        sharedTenants = Set.copyOf(tenants);
        return this;
    }

    /// As [#shareMemory(Path, Set)], only for clients that may act for all tenants.
    public TieredKvCacheBuilder shareMemory(Path folder) {
        return shareMemory(folder, Set.of());
    }

    /// Sets how much memory clients that map this store may have to write into, beside it in the folder. Default:
    /// [StagingLimits#DEFAULTS]. It is reserved at a client's first put.
    public TieredKvCacheBuilder stagingLimits(StagingLimits limits) {
        staging = limits;
        return this;
    }

    /// Sets whether a background thread touches the memory at once, so that first requests need not. Default:
    /// true.
    public TieredKvCacheBuilder prefaultInBackground(boolean inBackground) {
        prefaultInBackground = inBackground;
        return this;
    }

    /// Sets whether all memory is touched before the store is built. Default: false. Can take a second a GiB.
    public TieredKvCacheBuilder prefaultAtStart(boolean beforeBuilt) {
        prefaultAtStart = beforeBuilt;
        return this;
    }

    /// Returns the bytes that [#build] will reserve: for blocks and objects, and for the records of them.
    public long reservedBytes() {
        return hostBytes + RecordLayout.spanBytes(recordCount());
    }

    private int recordCount() {
        return records == 0 ? RecordCount.estimate(hostBytes, disks, others) : records;
    }

    /// Sets whether segments throw once their table or writer is closed. Default: true under `-ea`, false
    /// otherwise.
    ///
    /// Costs ten to twenty microseconds a table.
    public TieredKvCacheBuilder checkSegments(boolean throwAfterClose) {
        checkedSegments = throwAfterClose;
        return this;
    }

    /// Sets whether closing the store throws when tables are still open, instead of logging a warning. Default:
    /// false.
    public TieredKvCacheBuilder failOnLeak(boolean throwOnLeak) {
        failOnLeak = throwOnLeak;
        return this;
    }

    /// Sets whether to record the stack trace of each open table, for the report at close. Costs microseconds a
    /// table.
    public TieredKvCacheBuilder trackOpenHandles(boolean withStacks) {
        trackOpenHandles = withStacks;
        return this;
    }

    /// Sets how long closing waits for open tables. Default: 10 s. [#flushOnClose] comes after it.
    public TieredKvCacheBuilder closeWait(Duration wait) {
        if (wait.isNegative()) {
            throw new IllegalArgumentException("closeWait is " + wait + "; it takes 0 and up");
        }
        closeWait = wait;
        return this;
    }

    /// Sets how long closing may take to write blocks that are in host memory alone to the disks, once tables are
    /// closed. Default: 10 s. Without disks nothing is written.
    ///
    /// It is a [flush][io.kvcache.core.KvCache#flush]: it writes everything, whatever [#admission] would choose,
    /// most used first. Blocks not written in time are lost, and the loss is logged. With zero, closing writes
    /// only blocks that the admission chose before, for as long as [#closeWait] at most. Under the default
    /// admission that excludes everything that was put once.
    ///
    /// @param longest 0 to 24 hours
    public TieredKvCacheBuilder flushOnClose(Duration longest) {
        if (longest.isNegative() || longest.compareTo(MAX_FLUSH_ON_CLOSE) > 0) {
            throw new IllegalArgumentException("flushOnClose is " + longest + "; it takes 0 to 24 hours");
        }
        flushOnClose = longest;
        return this;
    }

    /// Sets the clock of waits and pins.
    public TieredKvCacheBuilder clock(Clock source) {
        clock = source;
        return this;
    }

    /// Adds a disk: the given number of bytes in a directory, which is created when it is missing. With several,
    /// blocks go to each in turn.
    public TieredKvCacheBuilder disk(Path directory, long bytes) {
        return disk(DiskOptions.of(directory, bytes));
    }

    /// Adds a disk.
    public TieredKvCacheBuilder disk(DiskOptions options) {
        disks.add(options);
        return this;
    }

    /// Adds a tier of another kind, such as memory of a GPU.
    ///
    /// In a store without disks it takes blocks like a disk, by the same [#admission], and several take turns. Its
    /// blocks count as kept, though it may not outlive the store. In a store with disks it is in front of them.
    /// Blocks written to a disk, or read from one, are copied there, and are read from there while it has them; all
    /// promises are the disks'. Of several each has a part of the blocks.
    public TieredKvCacheBuilder tier(TierSource source) {
        others.add(source);
        return this;
    }

    /// Sets which blocks are written to disk. Default: those of a second use.
    public TieredKvCacheBuilder admission(AdmissionKind kind) {
        admission = kind;
        return this;
    }

    /// Sets the saving by one use of a block in units of the cost of its write, for [AdmissionKind#VALUE].
    /// Default: [AdmissionKind#DEFAULT_GAIN].
    public TieredKvCacheBuilder gain(double usesWorth) {
        if (!(usesWorth > 0)) {
            throw new IllegalArgumentException("gain is " + usesWorth + "; it takes more than 0");
        }
        gain = usesWorth;
        return this;
    }

    /// Sets the cost of computing KV. Then a table leaves on disk the blocks that are computed sooner than read:
    /// see [io.kvcache.core.BlockTable#blocksToRecompute]. [AdmissionKind#VALUE] learns where in a prompt blocks
    /// are dear. By default all blocks on disk are read, and admission goes by Llama 3 8B.
    public TieredKvCacheBuilder prefill(PrefillCost cost) {
        prefill = cost;
        return this;
    }

    /// Sets whether blocks that readers are likely to ask for next are brought from disk ahead of them, as far as
    /// they promise more than the blocks evicted for them. Default: false. These are the blocks of a chain that a
    /// caller [matches][io.kvcache.core.KvCache#match], the blocks read before behind a chain that a caller
    /// acquires, and objects as [io.kvcache.core.KvCache#prefetchObject] says.
    public TieredKvCacheBuilder prefetch(boolean ahead) {
        prefetch = ahead;
        return this;
    }

    /// Reserves the memory and opens the store, and the disks if there are any. The contents of a disk are known
    /// soon after that, while the store serves.
    ///
    /// @throws MemoryReservationException when the memory cannot be had; the message says
    ///     what to do
    /// @throws IllegalStateException when native access is denied, likewise
    /// @throws io.kvcache.tiers.directory.DiskDirectoryException when a directory cannot be used for a disk
    /// @throws IllegalArgumentException for more tiers of other kinds than disks, where there are disks
    /// @throws RuntimeException when another tier cannot be opened, with its cause
    public TieredKvCache build() {
        if (sharedFolder == null) {
            return build(memory == null ? new MappedMemorySource(memoryOptions) : memory, null);
        }
        SharedMemorySource source = new SharedMemorySource(sharedFolder, new SecureRandom().nextLong(), staging);
        return build(source, source);
    }

    private TieredKvCache build(HostMemorySource source, @Nullable SharedMemorySource toPublish) {
        HostStore store = new HostStore(
                new HostStoreConfig(hostBytes, recordCount(), policy, eventCapacity),
                prefaultAtStart
                        ? PrefaultedMemory.atStart(source)
                        : prefaultInBackground ? PrefaultedMemory.inBackground(source) : source);
        TierStack tierStack;
        SharedHostMemory share;
        try {
            share = toPublish == null
                    ? null
                    : new SharedHostMemory(
                            store, toPublish.publish(recordCount(), !others.isEmpty()), sharedTenants, toPublish);
            tierStack = openTiers(store);
        } catch (RuntimeException refused) {
            store.close();
            throw refused;
        }
        OpenHandles openHandles = new OpenHandles(trackOpenHandles);
        Duration flush = disks.isEmpty() ? Duration.ZERO : flushOnClose;
        return new TieredKvCache(
                new StoreContext(
                        store,
                        openHandles,
                        checkedSegments,
                        clock,
                        tierStack.tierScheduler(),
                        prefill,
                        prefetch,
                        new AccessListeners()),
                new StoreShutdown(
                        store,
                        openHandles,
                        clock,
                        closeWait,
                        failOnLeak,
                        () -> tierStack.shutDown(store, flush, closeWait)),
                share);
    }

    private TierStack openTiers(HostStore store) {
        TierStack.AdmissionSettings admitting = new TierStack.AdmissionSettings(admission, gain);
        return disks.isEmpty() && others.isEmpty()
                ? TierStack.EMPTY
                : TierStack.open(store, disks, others, admitting, clock);
    }

    private static boolean assertionsEnabled() {
        return TieredKvCacheBuilder.class.desiredAssertionStatus();
    }

    /// Memory whose pages a thread touches in the background, so that the first requests need not.
    ///
    /// @param toucher stopped before the memory is closed
    private record PrefaultedMemory(HostMemory memory, BackgroundPrefaulter toucher) implements HostMemory {

        private static final long STEP_BYTES = 8L << 20;

        static HostMemorySource inBackground(HostMemorySource source) {
            return (purpose, bytes) -> {
                HostMemory memory = source.reserve(purpose, bytes);
                return new PrefaultedMemory(memory, BackgroundPrefaulter.start(new PagePrefaulter(memory), purpose));
            };
        }

        /// Memory whose pages are touched before its first use.
        static HostMemorySource atStart(HostMemorySource source) {
            return (purpose, bytes) -> {
                HostMemory memory = source.reserve(purpose, bytes);
                PagePrefaulter toucher = new PagePrefaulter(memory);
                while (toucher.prefaultNext(STEP_BYTES) > 0) {}
                if (toucher.progress() < 1) {
                    memory.close();
                    throw new MemoryReservationException("Space for '" + purpose
                            + "' ran out while it was touched, as the warning before this says");
                }
                return memory;
            };
        }

        @Override
        public MemorySegment segment() {
            return memory.segment();
        }

        @Override
        public boolean awaitSpace(long bytes) {
            return memory.awaitSpace(bytes);
        }

        @Override
        public String describe() {
            return memory.describe();
        }

        @Override
        public void close() {
            toucher.close();
            memory.close();
        }
    }

    /// Number of records that a store needs when the builder has no setting.
    private static final class RecordCount {

        /// One record for 64 KiB of disk: blocks that small are the least that is worth a disk's while.
        private static final long DISK_BYTES_PER_RECORD = 64 << 10;

        private RecordCount() {}

        static int estimate(long hostBytes, List<DiskOptions> disks, List<TierSource> others) {
            long below = disks.isEmpty()
                    ? others.stream().mapToLong(TierSource::maxLiveBytes).sum()
                    : disks.stream().mapToLong(DiskOptions::bytes).sum(); // what is in front of them is there as well
            long onDisk = below / DISK_BYTES_PER_RECORD;
            return Math.toIntExact(
                    Math.min(HostStoreConfig.defaultRecords(hostBytes) + onDisk, HostStoreConfig.MAX_RECORDS));
        }
    }
}

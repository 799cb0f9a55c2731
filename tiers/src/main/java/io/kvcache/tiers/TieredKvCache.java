package io.kvcache.tiers;

import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.AccessListener;
import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.CacheStats;
import io.kvcache.core.ChainListener;
import io.kvcache.core.DiskBlock;
import io.kvcache.core.Hint;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.Match;
import io.kvcache.core.ObjectCatalog;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutSummary;
import io.kvcache.core.RangeQuery;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.ByteRange;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.PromptTree;
import io.kvcache.core.policy.LruFallback;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.shm.StagingArea;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.stats.DiskTierStats;
import io.kvcache.core.stats.ObjectResidency;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.core.stats.PrefixLevel;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.store.TierPort;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.RecordHandle;
import io.kvcache.tiers.ObjectOperations.HostObjectCatalog;
import io.kvcache.tiers.RangeReads.TieredDiskBlock;
import io.kvcache.tiers.SlotWriter.RoomWaiter;
import io.kvcache.tiers.StoreContext.AccessListeners;
import io.kvcache.tiers.StoreContext.OpenHandles;
import io.kvcache.tiers.memory.SharedMemorySource;
import io.kvcache.tiers.movement.TierScheduler;
import io.kvcache.tiers.movement.TierScheduler.FlushBarrier;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.IntPredicate;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A store embedded in this JVM, on host memory and, if asked, disks.
///
/// ```java
/// try (var cache = TieredKvCache.builder().hostBytes(4L << 30).build()) {
///     cache.register(namespace);
///     BlockChain chain = cache.chain(namespace, tokens);
///     try (BlockTable table = cache.acquire(chain)) {
///         // prefill only what is missing: tokens from table.readyBlocks() * namespace.blockTokens() on
///     }
/// }
/// ```
///
/// **Ownership.** Closing the store gives its memory back. While tables, views or writers are open it waits for
/// [TieredKvCacheBuilder#closeWait], then leaves the memory mapped, reports the open handles, and returns;
/// nothing is ever unmapped under an open table.
///
/// **On disk.** Closing writes what is in host memory alone to the disks, within
/// [TieredKvCacheBuilder#flushOnClose]; a process that ends without it leaves there what the admission chose, and
/// what the last [#flush] wrote. After an opening the disks report what they hold: until they have
/// ([#isRecovering]), what is not reported yet is missed at once by all but an [#acquire] with a time-out, which
/// waits for its own blocks; [#awaitRecovered] waits for all.
///
/// **Threads.** Safe for any number. A virtual thread is never pinned to its carrier by anything but the lock.
public final class TieredKvCache implements LocalKvCache {

    private final HostStore store;
    private final OpenHandles openHandles;
    private final Hints hints;
    private final DiskLoader diskLoader;
    private final BlockReads blockReads;
    private final RangeReads rangeReads;
    private final BlockWrites puts;
    private final ObjectOperations objects;
    /// Null in a store without disks.
    private final @Nullable TierScheduler tierScheduler;
    private final Prefetcher prefetcher;
    private final StoreShutdown storeShutdown;
    private final AccessListeners listeners;
    private final List<Supplier<Runnable>> flushListeners = new CopyOnWriteArrayList<>();
    private final PromptTree prompts = new PromptTree(Caffeine.newBuilder()
            .maximumWeight(PromptTree.maxBytes())
            .weigher(PromptTree::weigh)
            .executor(Runnable::run)
            .build()
            .asMap());
    private final @Nullable SharedHostMemory share;

    /// @param share null when no other process may map the memory
    TieredKvCache(StoreContext storeContext, StoreShutdown storeShutdown, @Nullable SharedHostMemory share) {
        store = storeContext.store();
        openHandles = storeContext.openHandles();
        listeners = storeContext.listeners();
        TtlQueue ttlQueue = new TtlQueue(storeContext.clock(), store.hints());
        TimedPins pins = new TimedPins(store, storeContext.clock());
        RoomWaiter roomWaiter = new RoomWaiter(storeContext.clock(), store::countRefused, ttlQueue, pins);
        diskLoader = new DiskLoader(storeContext, ttlQueue);
        prefetcher = new Prefetcher(storeContext);
        blockReads = new BlockReads(storeContext, diskLoader, prefetcher);
        rangeReads = new RangeReads(storeContext, blockReads);
        hints = new Hints(store, storeContext.clock(), diskLoader, ttlQueue, pins);
        puts = new BlockWrites(storeContext, roomWaiter, diskLoader);
        objects = new ObjectOperations(storeContext, roomWaiter, diskLoader, hints);
        tierScheduler = storeContext.tierScheduler();
        this.storeShutdown = storeShutdown;
        this.share = share;
    }

    /// How a store is set up; see [TieredKvCacheBuilder].
    public static TieredKvCacheBuilder builder() {
        return new TieredKvCacheBuilder();
    }

    /// @throws IllegalArgumentException also when tenants map this store's memory and the namespace's is
    ///     none of them
    @Override
    public void register(Namespace namespace) {
        openHandles.requireOpen();
        if (share != null) {
            share.requireTenant(namespace);
        }
        store.register(namespace);
    }

    /// Gives a namespace a share of host memory by weight, which it may hold while others want room. Those
    /// without one have a weight of 1 together. A namespace whose share is full takes nothing from a namespace
    /// that is within its own. A full disk forgets what is of those who have most there for their weight; how
    /// many blocks go to it has no shares. To be said before the namespace holds any host memory.
    ///
    /// @param weight 1 to 1,000
    public void setWeight(Namespace namespace, int weight) {
        openHandles.requireOpen();
        store.setWeight(store.require(namespace), weight);
    }

    /// Registers a listener for look-ups and puts from now on.
    public void addAccessListener(AccessListener listener) {
        listeners.add(listener);
    }

    /// Registers a listener for look-ups of chains from now on.
    public void addChainListener(ChainListener listener) {
        listeners.addForChains(listener);
    }

    @Override
    public BlockChain chain(Namespace namespace, int[] tokens) {
        return prompts.chain(namespace, tokens);
    }

    @Override
    public Match match(BlockChain chain) {
        openHandles.requireOpen();
        NamespaceEntry entry = store.require(chain.namespace());
        int host = store.lookup().match(chain, chain.length());
        int disk = diskLoader.countOnDisk(chain, host);
        if (disk > 0 && prefetcher.isEnabled()) {
            int worth = diskLoader.blocksWorthLoading(chain, host, Prefetcher.DEFAULT_DEADLINE_NANOS);
            var _ = prefetcher.onMatch(chain, host, host + worth);
        }
        return matchOf(entry, chain, host, disk, true);
    }

    @Override
    public Match match(BlockChain chain, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        openHandles.requireOpen();
        NamespaceEntry entry = store.require(chain.namespace());
        int host = store.lookup().match(chain, chain.length());
        int disk = diskLoader.blocksWorthLoading(chain, host, timeoutNanos);
        var _ = prefetcher.onMatch(chain, host, host + disk);
        return matchOf(entry, chain, host, disk, timeoutNanos > 0);
    }

    /// @param host leading blocks in host memory
    /// @param below blocks behind these in slower tiers
    /// @param onDisk whether windows and states on disk alone count
    private Match matchOf(NamespaceEntry entry, BlockChain chain, int host, int below, boolean onDisk) {
        int full = host + below;
        if (full == 0) {
            return Match.NOTHING;
        }
        int end = store.lookup().matchEntries(entry, chain, full, onDisk);
        int here = Math.min(host, end);
        int hostToo = store.lookup().countOnDevice(chain, 0, here);
        int alone = store.lookup().countOnDevice(chain, here, end);
        return new Match(hostToo + alone, here - hostToo, end - here - alone, full);
    }

    /// How long it takes by now to read the given number of bytes from the disks, after what waits to be read,
    /// in nanoseconds; 0 while nothing is known.
    public double estimateReadNanos(long bytes) {
        return tierScheduler == null ? 0 : tierScheduler.estimateReadNanos(bytes);
    }

    @Override
    public BlockTable acquire(BlockChain chain, int from, Duration timeout) {
        return blockReads.acquire(chain, from, Timeouts.toNanos(timeout));
    }

    @Override
    public BlockTable acquireCopy(BlockChain chain, int from, Duration timeout) {
        return blockReads.acquireCopy(chain, from, Timeouts.toNanos(timeout));
    }

    @Override
    public void countFromDevice(Namespace namespace, int blocks, int alone) {
        store.require(namespace).countFromDevice(blocks, alone);
    }

    @Override
    public BlockTable acquireByLayers(BlockChain chain, int from, Duration timeout, int layersAStep) {
        return blockReads.acquireByLayers(chain, from, Timeouts.toNanos(timeout), layersAStep);
    }

    @Override
    public int getRange(BlockChain chain, int from, ByteRange range, List<MemorySegment> into, Duration timeout) {
        long timeoutNanos = Timeouts.toNanos(timeout);
        return rangeReads.read(new RangeQuery(chain, from, range, into), timeoutNanos);
    }

    @Override
    public BlockWriter put(BlockChain chain, int index, int part, Duration timeout) {
        return puts.put(chain, index, part, Timeouts.toNanos(timeout));
    }

    @Override
    public @Nullable DiskBlock diskObject(Namespace namespace, byte[] key) {
        BlockKey block = BlockKey.ofObject(namespace, key);
        openHandles.requireOpen();
        NamespaceEntry entry = store.require(namespace);
        TierScheduler by = tierScheduler;
        TierPort.DiskCopy copy = by == null ? null : store.tierPort().diskCopy(block.hi(), block.lo());
        if (by == null || copy == null) {
            return null;
        }
        return new TieredDiskBlock(store.tierPort(), by, copy, () -> {
            entry.countObjectRequest(true);
            listeners.onAccess(
                    AccessListener.LookupKind.GET,
                    namespace,
                    block,
                    copy.block().bytes());
        });
    }

    @Override
    public PutSummary putAll(BlockChain chain, int from, List<MemorySegment> blocks, Duration timeout) {
        return puts.putAll(chain, from, blocks, Timeouts.toNanos(timeout));
    }

    @Override
    public int drop(BlockChain chain, int from) {
        if (from < 0 || from > chain.length()) {
            throw new IndexOutOfBoundsException("from is " + from + "; this chain takes 0 to " + chain.length());
        }
        openHandles.requireOpen();
        store.require(chain.namespace());
        return (int) hints.sweepPins(from == chain.length() ? 0 : store.drop(chain, from));
    }

    @Override
    public long drop(Namespace namespace) {
        openHandles.requireOpen();
        return hints.sweepPins(store.dropAll(store.require(namespace)));
    }

    @Override
    public boolean hint(Hint hint) {
        openHandles.requireOpen();
        return hints.apply(hint);
    }

    @Override
    public ObjectWriter putObject(Namespace namespace, byte[] key, long bytes, Duration timeout) {
        return putObject(namespace, key, null, bytes, timeout);
    }

    @Override
    public ObjectWriter putObject(
            Namespace namespace, byte[] key, byte @Nullable [] after, long bytes, Duration timeout) {
        return objects.put(namespace, key, after, bytes, Timeouts.toNanos(timeout));
    }

    @Override
    public boolean storeObject(Namespace namespace, byte[] key, MemorySegment value, Duration timeout) {
        return objects.isStoredAtOnce(key, value.byteSize())
                ? objects.storeAtOnce(namespace, key, value, Timeouts.toNanos(timeout))
                : LocalKvCache.super.storeObject(namespace, key, value, timeout);
    }

    @Override
    public void warmObjects(Namespace namespace, List<byte[]> keys) {
        objects.warm(namespace, keys);
    }

    @Override
    public boolean linkObject(Namespace namespace, byte[] key, byte @Nullable [] after) {
        openHandles.requireOpen();
        return objects.linkAfter(namespace, key, after);
    }

    @Override
    public @Nullable ObjectView holdObject(Namespace namespace, byte[] key) {
        return objects.getResident(namespace, key);
    }

    @Override
    public @Nullable ObjectView getObject(Namespace namespace, byte[] key, Duration timeout) {
        openHandles.requireOpen();
        return objects.get(namespace, key, Timeouts.toNanos(timeout));
    }

    @Override
    public CompletionStage<@Nullable ObjectView> fetchObject(
            Namespace namespace, byte[] key, Duration timeout, Executor executor) {
        openHandles.requireOpen();
        return objects.fetch(namespace, key, Timeouts.toNanos(timeout), executor);
    }

    @Override
    public boolean prefetchObject(Namespace namespace, byte[] key) {
        openHandles.requireOpen();
        store.require(namespace);
        return prefetcher.startLoad(BlockKey.ofObject(namespace, key));
    }

    @Override
    public int hintObjects(Namespace namespace, List<byte[]> keys, ObjectHint hint) {
        openHandles.requireOpen();
        return hints.apply(namespace, keys, hint);
    }

    @Override
    public boolean containsObject(Namespace namespace, byte[] key) {
        openHandles.requireOpen();
        return objects.contains(namespace, key);
    }

    @Override
    public boolean dropObject(Namespace namespace, byte[] key) {
        openHandles.requireOpen();
        return objects.drop(namespace, key);
    }

    @Override
    public ObjectCatalog objects(Namespace namespace) {
        openHandles.requireOpen();
        return new HostObjectCatalog(store, store.require(namespace), hints);
    }

    /// A level of the tree of shared prefixes: the runs of blocks that chains begin with, or those that
    /// follow one. Looks at every record of the store, some thousands a turn of its lock, and takes four
    /// bytes for each meanwhile.
    ///
    /// @param namespaces by number, in the order of registration, whose blocks are shown
    /// @param under first block of the run whose branches are shown; null for those that chains begin with
    /// @param limit nodes that are listed at most
    public PrefixLevel prefixes(IntPredicate namespaces, @Nullable BlockKey under, int limit) {
        openHandles.requireOpen();
        return store.prefixes(namespaces, under, limit);
    }

    /// Visits the objects of some namespaces, in any tier; looks at every record of the store, as [#prefixes]
    /// does.
    ///
    /// @param namespaces by number, in the order of registration
    public void visitObjects(IntPredicate namespaces, Consumer<ObjectResidency> visitor) {
        openHandles.requireOpen();
        store.visitObjects(namespaces, visitor);
    }

    /// Returns whether a block is here, in any tier. Pins and touches nothing.
    public boolean containsBlock(Namespace namespace, BlockKey key) {
        openHandles.requireOpen();
        return store.lookup().containsBlock(store.require(namespace), key);
    }

    /// Drops a block and all below it, in every tier, also when it is on a disk that has not reported it yet.
    ///
    /// @return dropped blocks that were known
    public int dropBlock(Namespace namespace, BlockKey key) {
        openHandles.requireOpen();
        return store.drop(store.require(namespace), key);
    }

    @Override
    public boolean flush(Duration timeout) {
        openHandles.requireOpen();
        long timeoutNanos = Timeouts.toNanos(timeout);
        TierScheduler by = tierScheduler;
        List<Runnable> done = flushListeners.stream().map(Supplier::get).toList();
        boolean durable = by != null && by.awaitUntilInterrupted(by.flushBarrier(), timeoutNanos);
        if (durable) {
            done.forEach(Runnable::run);
        }
        return durable;
    }

    /// Registers a listener for flushes from now on, by callers of [#flush].
    ///
    /// @param listener is called before a flush begins; what it returns is run when all is durable that was
    ///     dropped or sealed when it was called, before the flush returns
    public void addFlushListener(Supplier<Runnable> listener) {
        flushListeners.add(listener);
    }

    /// Starts to make durable what has been dropped by now, with little else.
    ///
    /// @return is asked until it has an outcome, which it has not while a disk is being read: whether all of it is
    ///     durable
    /// @throws IllegalStateException in a store without disks
    public Supplier<Optional<Boolean>> flushDrops() {
        openHandles.requireOpen();
        if (tierScheduler == null) {
            throw new IllegalStateException("this store has no disks, so nothing can be made durable");
        }
        FlushBarrier barrier = tierScheduler.flushDrops();
        return () -> barrier.advance() ? Optional.of(barrier.isDurable()) : Optional.empty();
    }

    /// Has a disk that was taken out, or does not write any more, opened again now.
    ///
    /// @param disk in the order in which disks were given to the builder
    public void reopenDisk(int disk) {
        openHandles.requireOpen();
        TierScheduler by = tierScheduler;
        if (by == null || disk < 0 || disk >= by.tierCount()) {
            throw new IndexOutOfBoundsException(
                    "disk " + disk + " of a store with " + (by == null ? 0 : by.tierCount()));
        }
        by.reopen(disk);
    }

    @Override
    public CacheStats stats() {
        openHandles.requireOpen();
        hints.sweepPins();
        return store.stats(openHandles.openCount());
    }

    /// What a policy that learns has found, and what plain LRU would have; all zero under the others.
    public LruFallback.Report lruFallbackReport() {
        openHandles.requireOpen();
        return store.fallbackReport();
    }

    /// The eviction policy's clock, for [PrefixLevel.PrefixNode#lastUse]: it advances with uses, not with time.
    public long policyClock() {
        openHandles.requireOpen();
        return store.policyClock();
    }

    /// Tokens of the prompts that [#chain] was given: those whose hashes it knew, and those that it hashed.
    public PromptTree.TokenCounts promptTokens() {
        return prompts.counts();
    }

    /// What became of hints.
    public HintStats hintStats() {
        openHandles.requireOpen();
        return hints.stats();
    }

    /// What goes on between host memory and the disks, by disk.
    public List<TierTransferStats> diskStats() {
        openHandles.requireOpen();
        return tierScheduler == null ? List.of() : tierScheduler.stats();
    }

    /// Blocks that were left on disk, as [BlockTable#blocksToRecompute] says.
    public long blocksLeftOnDisk() {
        return diskLoader.blocksLeftOnDisk();
    }

    /// Counts of records that were loaded from disk ahead of requests.
    public PrefetchStats prefetchStats() {
        openHandles.requireOpen();
        return store.hints().prefetchStats();
    }

    /// Returns whether a disk has more to report of what it held before the opening; until then [#match] and an
    /// [#acquire] without a time-out miss that.
    public boolean isRecovering() {
        openHandles.requireOpen();
        return tierScheduler != null && tierScheduler.isRecovering();
    }

    /// Waits until the disks have reported all that they held before the opening. The store serves from the first
    /// moment, and an [#acquire] with a time-out waits for its own blocks alone.
    ///
    /// @param longest an interrupt ends the wait as well
    /// @return whether they have; at once, and true, in a store without disks
    public boolean awaitRecovered(Duration longest) {
        long longestNanos = Timeouts.toNanos("longest", longest);
        openHandles.requireOpen();
        return tierScheduler == null || tierScheduler.awaitRecovered(longestNanos);
    }

    /// What the tree knows of the disks, and what became of blocks that might have been written.
    public DiskTierStats offloadStats() {
        openHandles.requireOpen();
        return store.tierPort().stats();
    }

    /// Bytes of blocks and objects in host memory that no disk has; looks at every record.
    public long unsavedBytes() {
        openHandles.requireOpen();
        return store.tierPort().unflushedBytes();
    }

    @Override
    public MemorySegment hostMemory() {
        openHandles.requireOpen();
        return store.memory().asReadOnly();
    }

    @Override
    public @Nullable SharedMemory sharedMemory() {
        return share;
    }

    @Override
    public EventStream events() {
        openHandles.requireOpen();
        return store.events();
    }

    /// Checks every link, count and slot of the store against the others: for tests, and when in doubt.
    ///
    /// @throws AssertionError that names what does not agree
    public void validate() {
        openHandles.requireOpen();
        store.validate();
    }

    /// As [KvCache#close], after what is in host memory alone was written to the disks, if there are any, for
    /// as long as [TieredKvCacheBuilder#flushOnClose] allows.
    @Override
    public void close() {
        hints.close();
        storeShutdown.run();
    }

    /// Ends a store: bars new claims, waits for the open ones, and unmaps the memory only if all are gone.
    ///
    /// @param patience how long to wait for open tables
    /// @param strict whether tables that stay open are an error of the caller's, not just a warning
    /// @param tiers ends the movement to and from the tiers below, which still move what they have until then
    record StoreShutdown(
            HostStore store,
            OpenHandles openHandles,
            Clock clock,
            Duration patience,
            boolean strict,
            AutoCloseable tiers) {

        private static final Logger LOG = System.getLogger(TieredKvCache.class.getName());
        private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

        /// @throws IllegalStateException in strict mode, when tables were still open
        void run() {
            if (!openHandles.stopAccepting()) {
                return;
            }
            long start = clock.nanos();
            while (openHandles.openCount() > 0 && clock.nanos() - start < patience.toNanos()) {
                clock.sleep(PAUSE_NANOS);
            }
            closeTiers();
            if (openHandles.openCount() == 0) {
                store.close();
                return;
            }
            IllegalStateException report = openHandles.leakReport();
            if (strict) {
                throw report;
            }
            LOG.log(Level.WARNING, "The store is closed and its memory stays mapped", report);
        }

        private void closeTiers() {
            try {
                tiers.close();
            } catch (Exception failed) {
                LOG.log(Level.WARNING, "The tiers below host memory did not close", failed);
            }
        }
    }

    /// The memory of a store that others may map.
    record SharedHostMemory(HostStore store, SharedMemoryFiles files, Set<String> tenants, SharedMemorySource source)
            implements SharedMemory {

        /// Checks that the namespace's tenant may share this memory. Of tenants that may not read each other,
        /// only one side may lie in memory that tenants map.
        ///
        /// @throws IllegalArgumentException when tenants map this memory, and the namespace's tenant is not
        ///     among them
        void requireTenant(Namespace namespace) {
            if (!tenants.isEmpty() && !tenants.contains(namespace.owner())) {
                throw new IllegalArgumentException("tenant = \"" + namespace.tenant() + "\" of " + namespace
                        + " is not of the trust domain whose tenants map this memory; allowed: "
                        + tenants.stream().sorted().collect(Collectors.joining("\", \"", "\"", "\"")));
            }
        }

        @Override
        public UUID proof() {
            return source.proof();
        }

        @Override
        public MemorySegment slots() {
            return store.memory();
        }

        @Override
        public boolean mayBeMappedBy(String tenant) {
            return tenants.contains(tenant);
        }

        @Override
        public int namespaceId(Namespace namespace) {
            return store.require(namespace).id();
        }

        @Override
        public void recordAccess(long handle) {
            int record = RecordHandle.record(handle);
            if (record >= 0 && record < store.records().capacity()) {
                store.lookup().touch(handle);
            }
        }

        @Override
        public long offsetOf(MemorySegment shown) {
            MemorySegment all = store.memory();
            long offset = shown.address() - all.address();
            if (offset < 0 || offset + shown.byteSize() > all.byteSize()) {
                throw new IllegalArgumentException("this memory is none of the store's");
            }
            return offset;
        }

        @Override
        public long maxStagingBytes() {
            return source.maxStagingBytes();
        }

        @Override
        public StagingArea createStagingArea(long bytes) {
            return source.createStagingArea(bytes);
        }
    }
}

package io.kvcache.gpu.sequence;

import io.kvcache.core.BlockTable;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.driver.CopyBatch;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceError;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceStream;
import io.kvcache.gpu.driver.ResourceScope;
import io.kvcache.gpu.sequence.LayeredLoad.LoadedBlock;
import io.kvcache.gpu.tier.CudaTier;
import io.kvcache.gpu.tier.DevicePages;
import io.kvcache.gpu.tier.DevicePages.Page;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/// The KV memory of an engine that runs its kernels in this process, paged, in the memory of a GPU tier: what the
/// engine computes is in the cache where it lies.
///
/// A [Sequence] has a page for each block of its tokens. Its beginning are blocks that were there, shared with
/// others and not to be written; blocks in host memory or on disk are loaded. Its rest are pages of its own. A page
/// that becomes full is sealed under the key of its block: from then on other sequences find it, and it stays when
/// the sequence has ended, until it is evicted. Sealed pages are also put into the store, by a copy to host memory
/// in the background. Once the store writes the block to the tier, the page itself is the copy there.
///
/// What the store does not take, as by its policy, is here alone, and gone when it is evicted.
///
/// **Order.** The engine reads and writes pages by kernels and copies on the one stream that it gives here. What
/// this class does is ordered before and behind it on the device; no call waits for the device, but where it says
/// so.
///
/// **Threads.** The driver's.
///
/// **Errors.** [DeviceException] when the device refuses anything; then nothing is left but to close this. A row is
/// never wrong because of that: what was not copied is not found.
public final class PagedKvCache implements AutoCloseable {

    private static final Logger LOG = System.getLogger(PagedKvCache.class.getName());
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration MAX_TIMEOUT = Duration.ofDays(365);
    private static final long PAUSE_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

    private final LocalKvCache cache;
    private final Namespace namespace;
    private final DevicePages pages;
    private final DeviceDriver driver;
    private final DeviceStream stream;
    private final DeviceStream loads;
    private final DeviceStream toHost;
    private final PageSpills spills;
    private final ResourceScope resources = new ResourceScope();
    private final Set<Sequence> sequences = new HashSet<>();
    private final Deque<DeviceEvent> freeEvents = new ArrayDeque<>();
    private final Deque<Pending> pending = new ArrayDeque<>();
    private final List<Runnable> abandoned = new ArrayList<>();
    private @Nullable DeviceException failure;
    private boolean closed;

    /// What is to be done when the engine's stream has got to a place.
    private record Pending(DeviceEvent reached, Runnable action) {}

    private PagedKvCache(
            LocalKvCache cache, DevicePages pages, DeviceDriver driver, DeviceStream stream, Namespace namespace) {
        this.cache = cache;
        this.namespace = namespace;
        this.pages = pages;
        this.driver = driver;
        this.stream = stream;
        try {
            requireStream();
            register(cache.hostMemory());
            driver.adopt(pages.allocation());
            resources.register(() -> driver.disown(pages.allocation()));
            loads = resources.register(driver.openStream(Priority.HIGH), DeviceStream::close);
            toHost = resources.register(driver.openStream(Priority.NORMAL), DeviceStream::close);
            spills = new PageSpills(cache, pages, this, toHost);
        } catch (RuntimeException refused) {
            releaseAll();
            throw refused;
        }
    }

    private void requireStream() {
        try {
            stream.record(event());
        } catch (DeviceException refused) {
            if (refused.error() == DeviceError.BAD_REQUEST) {
                throw new IllegalArgumentException("the stream is not one of the driver", refused);
            }
            throw refused;
        }
    }

    /// Gives all back that the device takes back.
    private void releaseAll() {
        boolean isDone = false;
        while (!isDone) {
            try {
                resources.releaseAll();
                isDone = true;
            } catch (DeviceException | IllegalStateException refused) { // the rest is given back next
                LOG.log(Level.WARNING, "not given back by itself, but with the device: {0}", refused.getMessage());
            }
        }
        pages.close();
    }

    private void register(MemorySegment slots) {
        if (slots.byteSize() == 0) {
            return;
        }
        if (driver.isReachable(slots)) {
            throw new IllegalStateException(
                    "the driver has the store's memory registered already; a paged cache takes a driver of its own");
        }
        DeviceException refused = driver.tryRegister(slots);
        if (refused == null) {
            resources.register(() -> driver.unregister(slots));
        } else {
            LOG.log(Level.WARNING, "host memory stays unregistered, and copies slower: {0}", refused.getMessage());
        }
    }

    /// Begins to use a part of a tier's memory.
    ///
    /// @param cache the store that has the tier; it outlives this
    /// @param driver of the tier's device, the engine's own, for one paged cache at a time; it stays the caller's,
    ///     and outlives this
    /// @param stream of that driver, on which the engine uses the pages
    /// @param namespace of one part; it is registered
    /// @param maxBytes of pages, up to [CudaTier#maxPageBytes]; the tier's other memory is for blocks of others
    /// @throws IllegalArgumentException for a namespace with several parts, sizes that the tier does not take, and
    ///     a stream of another driver
    /// @throws IllegalStateException when the driver has another paged cache
    /// @throws DeviceException when the device refuses
    public static PagedKvCache open(
            LocalKvCache cache,
            CudaTier tier,
            DeviceDriver driver,
            DeviceStream stream,
            Namespace namespace,
            long maxBytes) {
        cache.register(namespace);
        if (namespace.parts().size() != 1 || !namespace.groups().isEmpty()) {
            throw new IllegalArgumentException(
                    namespace + " has " + namespace.parts().size() + " parts; allowed: 1 of kind FULL");
        }
        return new PagedKvCache(cache, tier.openPages(namespace, maxBytes), driver, stream, namespace);
    }

    /// Whether a sequence fits, beside those that are there.
    ///
    /// @param pages that it takes, without those that are shared
    /// @param sharedPages leading blocks of the prompt that are on the device
    /// @param availablePages pages that are free or can be evicted
    /// @param evictedPages cached blocks that have to go for it
    public record Admission(int pages, int sharedPages, int availablePages, int evictedPages) {

        /// Returns whether there is room.
        public boolean fits() {
            return pages <= availablePages;
        }
    }

    /// Returns whether a sequence would fit now. Takes nothing.
    ///
    /// @param moreTokens that it may grow by, 0 and up
    public Admission admission(int[] prompt, int moreTokens) {
        requireOpen();
        if (moreTokens < 0) {
            throw new IllegalArgumentException(moreTokens + " more tokens; allowed: 0 and up");
        }
        return admission(cache.chain(namespace, prompt), (long) prompt.length + moreTokens, cachedLimit(prompt.length));
    }

    /// @param limit blocks of the chain that may be shared
    private Admission admission(BlockChain chain, long tokens, int limit) {
        int shared = 0;
        int idle = 0;
        while (shared < limit && pages.contains(chain.key(shared))) {
            idle += pages.isCached(chain.key(shared)) ? 1 : 0;
            shared++;
        }
        int needed = pagesFor(tokens) - shared;
        int available = Math.max(0, pages.available() - idle);
        return new Admission(needed, shared, available, Math.clamp(needed - pages.unused(), 0, available));
    }

    /// Begins a sequence: finds the leading blocks of its prompt and takes pages for the rest of it. The last token
    /// is always left to be computed, as an engine wants what the model says of it.
    ///
    /// @param prompt 1 token and up; not kept
    /// @param timeout for blocks to come from a disk, and for room
    /// @return null when there is no room in time
    /// @throws IllegalArgumentException for a prompt that takes more pages than there can be
    public @Nullable Sequence begin(int[] prompt, Duration timeout) {
        return begin(prompt, timeout, namespace.parts().getFirst().shape().layers());
    }

    /// As [#begin(int[], Duration)], but what has to be loaded comes by layers, while the engine computes the first
    /// ones: see [Sequence#awaitLayers].
    ///
    /// @param layersAStep of what comes from a disk, 1 and up
    public @Nullable Sequence beginByLayers(int[] prompt, Duration timeout, int layersAStep) {
        if (layersAStep < 1) {
            throw new IllegalArgumentException("layersAStep is " + layersAStep + "; it takes 1 and up");
        }
        return begin(prompt, timeout, layersAStep);
    }

    private @Nullable Sequence begin(int[] prompt, Duration timeout, int layersAStep) {
        requireOpen();
        if (prompt.length == 0) {
            throw new IllegalArgumentException("a prompt of 0 tokens; allowed: 1 and up");
        }
        if (pagesFor(prompt.length) > pages.maxPages()) {
            throw new IllegalArgumentException("a prompt of %s tokens takes %s pages; the paged cache has %s"
                    .formatted(prompt.length, pagesFor(prompt.length), pages.maxPages()));
        }
        long deadline = deadline(timeout);
        poll();
        BlockChain chain = cache.chain(namespace, prompt).prefix(cachedLimit(prompt.length));
        Admission admission = admission(chain, prompt.length, chain.length());
        if (admission.pages > admission.availablePages + comingPages()) {
            return null; // before anything is evicted for it
        }
        pages.demand(admission.pages);
        Sequence sequence = new Sequence(this);
        add(sequence);
        boolean hasRoom = load(sequence, chain, prompt, layersAStep, deadline)
                && sequence.reserve(prompt.length - sequence.tokens(), remaining(deadline));
        if (!hasRoom) {
            sequence.close();
            return null;
        }
        return sequence;
    }

    /// Pages that are held by what runs in the background, at most.
    int comingPages() {
        return spills.waiting() + (pending.isEmpty() ? 0 : pages.maxPages());
    }

    private int cachedLimit(int tokens) {
        return (tokens - 1) / namespace.blockTokens();
    }

    int pagesFor(long tokens) {
        return Math.toIntExact(Math.ceilDiv(tokens, (long) namespace.blockTokens()));
    }

    /// Gives a sequence the leading blocks of a chain that are anywhere.
    ///
    /// @param tokens of the chain, perhaps more
    /// @param layersAStep of what comes from a disk; of as many as there are, or more, all is waited for
    /// @return false when there is no room for all that could be loaded
    /// @throws DeviceException when the device refuses; the sequence is only to be closed then
    boolean load(Sequence sequence, BlockChain chain, int[] tokens, int layersAStep, long deadline) {
        int layers = namespace.parts().getFirst().shape().layers();
        List<Page> found = new ArrayList<>();
        findOnDevice(chain, found);
        int first = found.size();
        if (first == chain.length()) {
            count(found.size(), found.size());
            sequence.start(chain, tokens, found, null);
            return true;
        }
        boolean isWhole = layersAStep >= layers;
        BlockTable table = isWhole
                ? cache.acquire(chain, first, remaining(deadline))
                : cache.acquireByLayers(chain, first, remaining(deadline), layersAStep);
        List<LoadedBlock> loaded = new ArrayList<>();
        boolean hasRoom = false;
        int end = first;
        try {
            end = isWhole ? table.await(table.endBlock(), remaining(deadline)) : table.endBlock();
            hasRoom = takePages(chain, end, found, loaded, deadline);
            if (hasRoom) {
                findOnDevice(chain, found);
            }
        } finally {
            int alone = found.size() - (Math.min(end, found.size()) - first);
            count(found.size() - loaded.size(), alone);
            LayeredLoad coming = loaded.isEmpty() ? null : new LayeredLoad(this, chain, table, loaded, layers);
            sequence.start(chain.prefix(found.size()), tokens, found, coming);
            if (coming == null) {
                table.close();
            }
        }
        return hasRoom && (!isWhole || sequence.load(layers, remaining(deadline)));
    }

    private void count(int fromDevice, int alone) {
        if (fromDevice > 0) {
            cache.countFromDevice(namespace, fromDevice, alone);
        }
    }

    /// Has a page for each block up to `end`: the one that has it, or one for it to be copied to.
    private boolean takePages(BlockChain chain, int end, List<Page> found, List<LoadedBlock> loaded, long deadline) {
        while (found.size() < end) {
            int index = found.size();
            Page page = pages.find(chain.key(index));
            if (page == null) {
                page = take(deadline);
                if (page == null) {
                    return false;
                }
                pages.hold(page);
                loaded.add(new LoadedBlock(index, page));
            }
            found.add(page);
        }
        return true;
    }

    private void findOnDevice(BlockChain chain, List<Page> found) {
        while (found.size() < chain.length()) {
            Page page = pages.find(chain.key(found.size()));
            if (page == null) {
                return;
            }
            found.add(page);
        }
    }

    /// Copies to pages, of which the stream may still be reading what they had before. It goes on when they are
    /// copied.
    ///
    /// @param action when that is so
    void copyToPages(CopyBatch batch, Runnable action) {
        DeviceEvent free = event();
        DeviceEvent copied = event();
        stream.record(free);
        loads.waitFor(free);
        loads.copy(batch);
        loads.record(copied);
        stream.waitFor(copied);
        freeEvents.add(free);
        pending.add(new Pending(copied, action));
    }

    /// The device has refused something: this is of no use any more.
    ///
    /// @param giveBack for what has to stay as long as the device may be using it
    /// @return what to throw
    DeviceException abandon(DeviceException refused, Runnable giveBack) {
        failure = failure == null ? refused : failure;
        abandoned.add(giveBack);
        return refused;
    }

    /// Makes a page a block of a chain.
    static boolean seal(DevicePages pages, Page page, BlockChain chain, int index) {
        return pages.seal(page, chain.key(index), index == 0 ? null : chain.key(index - 1));
    }

    /// Lets go of pages. What the tier may write over stays until the stream has read it.
    void release(List<Page> released) {
        List<Page> blocks = released.stream().filter(Page::isBlockOfTier).toList();
        released.stream().filter(page -> !page.isBlockOfTier()).forEach(pages::release);
        if (blocks.isEmpty()) {
            return;
        }
        Runnable giveBack = () -> blocks.forEach(pages::release);
        try {
            onStream(giveBack);
        } catch (DeviceException refused) {
            DeviceException _ = abandon(refused, giveBack);
        } catch (IllegalStateException closedDriver) {
            abandoned.add(giveBack);
        }
    }

    /// Forgets block `from` of a chain and every block below it, here and in the store. Sequences that have them go
    /// on. [LocalKvCache#drop] alone does not know of blocks that are on the device alone.
    ///
    /// @return how many blocks the store has forgotten
    public int drop(BlockChain chain, int from) {
        requireOpen();
        for (int index = from; index < chain.length(); index++) {
            pages.drop(chain.key(index));
        }
        spills.awaitSealed();
        return cache.drop(chain, from);
    }

    /// Takes a page, waiting while one may become free.
    @Nullable
    Page take(long deadline) {
        Page page = pages.take();
        while (page == null && (pages.available() + comingPages() > 0)) {
            if (deadline - System.nanoTime() <= 0) {
                return null;
            }
            poll();
            LockSupport.parkNanos(this, PAUSE_NANOS);
            page = pages.take();
        }
        return page;
    }

    /// Has something done once the engine's stream has done what it was given by now.
    void onStream(Runnable action) {
        DeviceEvent event = event();
        stream.record(event);
        pending.add(new Pending(event, action));
    }

    DeviceEvent event() {
        DeviceEvent known = freeEvents.poll();
        return known == null ? resources.register(driver.openEvent(), DeviceEvent::close) : known;
    }

    void recycle(DeviceEvent event) {
        freeEvents.add(event);
    }

    /// Goes on with what runs in the background. Every other call does it too; an engine without work may call it.
    public void poll() {
        requireOpen();
        pollPending();
        spills.poll();
    }

    private void pollPending() {
        while (!pending.isEmpty() && pending.getFirst().reached.isReached()) {
            Pending next = pending.remove();
            freeEvents.add(next.reached);
            next.action.run();
        }
    }

    void requireOpen() {
        if (closed) {
            throw new IllegalStateException("the paged cache is closed");
        }
        if (Thread.currentThread().isVirtual()) {
            throw new IllegalStateException("a device belongs to a platform thread, and this one is virtual");
        }
        DeviceException before = failure;
        if (before != null) {
            throw before;
        }
        if (pages.isOut()) {
            throw new DeviceException(DeviceError.DEVICE_LOST, "pages", "the tier is out");
        }
    }

    /// Pages by what they are.
    ///
    /// @param heldPages of sequences, those that several share counted once
    /// @param cachedPages blocks that no sequence has
    /// @param unusedPages that hold nothing
    /// @param waitingSpills sealed pages that are to be put into the store, or on their way
    public record PageCounts(int heldPages, int cachedPages, int unusedPages, int waitingSpills) {}

    /// Returns how many pages there are of each kind.
    public PageCounts pageCounts() {
        return new PageCounts(pages.held(), pages.cached(), pages.unused(), spills.waiting());
    }

    /// Waits until all sealed pages are in the store, or it has declined them. For them to be on a disk, the store
    /// has to be flushed behind that.
    ///
    /// @return whether that is so in time
    public boolean flush(Duration timeout) {
        requireOpen();
        return await(deadline(timeout), () -> pending.isEmpty() && !spills.isBusy());
    }

    /// Waits for what the device is at.
    private boolean await(long deadline, BooleanSupplier done) {
        pollPending();
        spills.poll();
        while (!done.getAsBoolean()) {
            if (deadline - System.nanoTime() <= 0) {
                return false;
            }
            LockSupport.parkNanos(this, PAUSE_NANOS);
            pollPending();
            spills.poll();
        }
        return true;
    }

    /// Makes room on the device for the block tables of batches.
    ///
    /// @param maxSequences of a batch
    /// @param maxBlocks of a sequence
    /// @return the caller's, to be closed before this
    public BatchTables openTables(int maxSequences, int maxBlocks) {
        requireOpen();
        return new BatchTables(this, driver, maxSequences, maxBlocks);
    }

    static long deadline(Duration timeout) {
        return System.nanoTime() + (timeout.compareTo(MAX_TIMEOUT) < 0 ? timeout : MAX_TIMEOUT).toNanos();
    }

    static Duration remaining(long deadline) {
        return Duration.ofNanos(Math.max(0, deadline - System.nanoTime()));
    }

    Namespace namespace() {
        return namespace;
    }

    long pageBytes() {
        return namespace.blockBytes();
    }

    BlockChain emptyChain() {
        return BlockChain.of(namespace, new int[0]);
    }

    DevicePages pages() {
        return pages;
    }

    DeviceStream stream() {
        return stream;
    }

    PageSpills spills() {
        return spills;
    }

    void add(Sequence sequence) {
        sequences.add(sequence);
    }

    void forget(Sequence sequence) {
        sequences.remove(sequence);
    }

    /// Ends all sequences, waits a bounded time for the stream and for what is being put into the store, and gives
    /// the memory back to the tier. What it cached leaves the device. A second close does nothing.
    ///
    /// @throws IllegalStateException when they do not end: it stays open then, as the device may be using its
    ///     memory
    @Override
    public void close() {
        if (closed) {
            return;
        }
        Set.copyOf(sequences).forEach(Sequence::close);
        if (!awaitEnd(deadline(CLOSE_TIMEOUT))) {
            throw new IllegalStateException("the paged cache is in use: a copy or a kernel does not end");
        }
        closed = true;
        pending.forEach(each -> each.action.run());
        abandoned.forEach(Runnable::run);
        spills.close();
        releaseAll();
    }

    /// Waits until the device does nothing here any more, or is of no use.
    private boolean awaitEnd(long deadline) {
        try {
            if (failure == null && !await(deadline, () -> pending.isEmpty() && !spills.isBusy())) {
                return false;
            }
        } catch (DeviceException | IllegalStateException out) {
            LOG.log(Level.WARNING, "pages that are not put into the store: {0}", out.getMessage());
        }
        while (!isIdle()) {
            if (deadline - System.nanoTime() <= 0) {
                return false;
            }
            LockSupport.parkNanos(this, PAUSE_NANOS);
        }
        return true;
    }

    private boolean isIdle() {
        try {
            return stream.isIdle() && loads.isIdle() && toHost.isIdle();
        } catch (DeviceException out) {
            return out.error().isFatal();
        } catch (IllegalStateException closedDriver) {
            return true; // which waited for its streams
        }
    }
}

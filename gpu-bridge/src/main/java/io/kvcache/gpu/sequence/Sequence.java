package io.kvcache.gpu.sequence;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.tier.DevicePages;
import io.kvcache.gpu.tier.DevicePages.Page;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/// The tokens of one request whose keys and values are on the device, and the pages that have them.
///
/// A step of an engine: [#reserve] for the tokens of the step, kernels that write their keys and values to the
/// pages, [#append] of these tokens. Page `i` has the tokens from `i * blockTokens` on, laid out as the namespace
/// says.
///
/// **Ownership.** The caller closes it, also when it is preempted. Kernels that are on the stream by then still
/// find the pages as they were.
///
/// **Threads.** As of [PagedKvCache].
///
/// **Errors.** [IllegalStateException] after the end, and while it is preempted.
public final class Sequence implements AutoCloseable {

    private final PagedKvCache owner;
    private final DevicePages pool;
    private final int blockTokens;
    private final List<Page> pages = new ArrayList<>();
    private BlockChain chain;
    private int[] known = {};
    private int writable;
    private @Nullable LayeredLoad loading;
    private @Nullable Preempted preempted;
    private boolean closed;

    /// What a preempted sequence has in host memory.
    ///
    /// @param lastPage the page that was not full; empty if there was none
    private record Preempted(Arena arena, MemorySegment lastPage) {}

    Sequence(PagedKvCache owner) {
        this.owner = owner;
        pool = owner.pages();
        chain = owner.emptyChain();
        blockTokens = owner.namespace().blockTokens();
    }

    /// Begins with blocks that are there.
    ///
    /// @param coming those that are still loaded, or null
    void start(BlockChain beginning, int[] all, List<Page> found, @Nullable LayeredLoad coming) {
        loading = coming;
        chain = beginning;
        writable = tokens();
        known = Arrays.copyOf(all, Math.max(tokens(), all.length));
        pages.addAll(found);
    }

    /// Returns how many tokens have their keys and values in the pages.
    public int tokens() {
        return chain.tokens();
    }

    /// Returns how many pages it has: those of its tokens, and those that were reserved.
    public int pages() {
        return pages.size();
    }

    /// Returns where page `index` lies.
    public DeviceSpan page(int index) {
        requireActive();
        return pages.get(Objects.checkIndex(index, pages.size())).span();
    }

    /// The full blocks, for [io.kvcache.core.SharedBlocks].
    public BlockChain chain() {
        return chain;
    }

    /// Waits until the first layers of all its blocks are here, of a sequence that was begun by layers. What is
    /// given to the stream then finds them.
    ///
    /// Blocks may turn out not to come; then they are cut off with all behind them, reserved pages too. So ask
    /// [#tokens] again after each call: if they are fewer than before, reserve and compute the others, from the
    /// first layer on.
    ///
    /// @param layers 1 and up; as many as a block has, at last, before anything is appended
    /// @return false when they are not here in time
    public boolean awaitLayers(int layers, Duration timeout) {
        requireActive();
        return load(layers, timeout);
    }

    /// As [#awaitLayers], also while it is being resumed.
    boolean load(int layers, Duration timeout) {
        LayeredLoad load = loading;
        if (load == null) {
            return true;
        }
        boolean isHere = load.await(layers, timeout);
        if (load.firstLost() < chain.length()) {
            releaseFrom(load.firstLost());
            cut(load.firstLost() * blockTokens);
        }
        if (load.isDone()) {
            loading = null;
        }
        return isHere;
    }

    /// Makes room for the next tokens: takes pages, and copies the last one if it is shared. What was reserved
    /// before and not appended counts.
    ///
    /// @param more tokens to be written, behind [#tokens]
    /// @param timeout for pages to become free, which takes the tier a moment
    /// @return false when there is no room in time; then nothing has changed, and another sequence may be preempted
    public boolean reserve(int more, Duration timeout) {
        requireActive();
        if (more < 0) {
            throw new IllegalArgumentException(more + " tokens; allowed: 0 and up");
        }
        long deadline = PagedKvCache.deadline(timeout);
        int tokens = tokens();
        int needed = owner.pagesFor((long) tokens + more);
        List<Page> taken = new ArrayList<>();
        int full = tokens / blockTokens;
        boolean copiesLast = more > 0 && full < pages.size() && !pages.get(full).isWritable();
        int wanted = Math.max(0, needed - pages.size()) + (copiesLast ? 1 : 0);
        if (wanted > pool.available() + owner.comingPages()) {
            return false; // before anything is evicted for it
        }
        pool.demand(wanted);
        while (taken.size() < wanted) {
            Page page = owner.take(deadline);
            if (page == null) {
                taken.forEach(pool::release);
                return false;
            }
            taken.add(page);
        }
        Page copy = copiesLast ? taken.removeFirst() : null;
        pages.addAll(taken);
        if (copy != null) {
            replace(full, copy);
        }
        writable = Math.max(writable, tokens + more);
        return true;
    }

    /// The last page is another sequence's too, or a block: this one goes on in a copy.
    private void replace(int index, Page copy) {
        Page shared = pages.get(index);
        try {
            owner.stream()
                    .copyWithinDevice(
                            shared.span().address(),
                            copy.span().address(),
                            copy.span().bytes());
        } catch (DeviceException refused) {
            throw owner.abandon(refused, () -> pool.release(copy));
        }
        pages.set(index, copy);
        owner.release(List.of(shared));
    }

    /// The keys and values of these tokens are in the pages, or will be once the stream has done what it was given.
    /// Pages that are full with them are sealed.
    ///
    /// @param more tokens, as many as were [reserved][#reserve] or fewer
    /// @throws IllegalStateException when they were not reserved
    public void append(int... more) {
        requireLoaded();
        int tokens = tokens();
        if (tokens + more.length > writable) {
            throw new IllegalStateException(
                    "%s tokens behind %s; reserved: %s".formatted(more.length, tokens, writable - tokens));
        }
        if (known.length < tokens + more.length) {
            known = Arrays.copyOf(known, Math.max(2 * known.length, tokens + more.length));
        }
        System.arraycopy(more, 0, known, tokens, more.length);
        int before = chain.length();
        chain = chain.extend(more);
        for (int index = before; index < chain.length(); index++) {
            if (PagedKvCache.seal(pool, pages.get(index), chain, index)) {
                owner.spills().add(chain, index, pages.get(index));
            }
        }
        owner.poll();
    }

    /// Begins another sequence with the same tokens, for parallel samples and beams. All pages are shared; who
    /// first writes behind the tokens copies the last one. What was reserved and not appended is to be reserved
    /// again.
    public Sequence fork() {
        requireLoaded();
        Sequence other = new Sequence(owner);
        owner.add(other);
        List<Page> shared = List.copyOf(pages.subList(0, owner.pagesFor(tokens())));
        shared.forEach(pool::hold);
        other.start(chain, known, shared, null);
        writable = tokens();
        return other;
    }

    /// Forgets the tokens from one on, as those that a draft model proposed and the model did not accept.
    ///
    /// @param kept tokens, 0 to [#tokens]
    public void truncate(int kept) {
        requireLoaded();
        if (kept < 0 || kept > tokens()) {
            throw new IllegalArgumentException(kept + " tokens; allowed: 0 to " + tokens());
        }
        releaseFrom(owner.pagesFor(kept));
        cut(kept);
    }

    private void cut(int kept) {
        int full = kept / blockTokens;
        chain = chain.prefix(full).extend(Arrays.copyOfRange(known, full * blockTokens, kept));
        writable = kept;
    }

    /// Deepest first, which is the order in which they are evicted.
    private void releaseFrom(int index) {
        List<Page> rest = pages.subList(index, pages.size());
        List<Page> released = List.copyOf(rest.reversed());
        rest.clear();
        owner.release(released);
    }

    /// Lets go of all pages, so that others have room: full ones are blocks by now, in host memory or on the
    /// device, and the last one is copied to host memory. Waits for that, and for all pages that are being put into
    /// the store. No room is kept for the blocks: a store that is short of memory may evict or decline them.
    ///
    /// @param timeout for the copies; pages that are not in the store by then may be lost
    /// @return false when the copy of the last page did not end in time; then nothing has changed
    public boolean preempt(Duration timeout) {
        requireLoaded();
        Arena arena = Arena.ofShared();
        int full = chain.length();
        MemorySegment last = MemorySegment.NULL;
        boolean[] copied = {false};
        try {
            if (tokens() > full * blockTokens) {
                DeviceSpan page = pages.get(full).span();
                last = arena.allocate(page.bytes(), 64);
                owner.stream().copyToHost(page.address(), last);
            }
            owner.onStream(() -> copied[0] = true);
            boolean _ = owner.flush(timeout);
            if (!copied[0]) {
                owner.onStream(arena::close);
                return false;
            }
        } catch (DeviceException refused) {
            throw owner.abandon(refused, arena::close);
        }
        releaseFrom(0);
        preempted = new Preempted(arena, last);
        return true;
    }

    /// Returns whether it has no pages since [#preempt].
    public boolean isPreempted() {
        return preempted != null;
    }

    /// Has its pages again: those that are on the device, and what has to be loaded. Blocks that are nowhere any
    /// more are cut off with all behind them: ask [#tokens] how many are there, and compute the others again.
    ///
    /// @param timeout for blocks to come from a disk, and for room
    /// @return false when there is no room in time; it stays preempted
    /// @throws IllegalStateException unless it is preempted
    public boolean resume(Duration timeout) {
        Preempted state = preempted;
        if (closed || state == null) {
            throw new IllegalStateException(closed ? "the sequence has ended" : "the sequence is not preempted");
        }
        long deadline = PagedKvCache.deadline(timeout);
        owner.poll();
        BlockChain all = chain;
        boolean hasRoom = owner.load(this, chain.prefix(chain.length()), known, Integer.MAX_VALUE, deadline);
        boolean isWhole = chain.length() == all.length();
        Page page = hasRoom && isWhole && state.lastPage.byteSize() > 0 ? owner.take(deadline) : null;
        if (!hasRoom || (isWhole && state.lastPage.byteSize() > 0 && page == null)) {
            stop();
            chain = all;
            return false;
        }
        preempted = null;
        try {
            if (page != null) {
                pages.add(page);
                owner.stream().copyToDevice(state.lastPage, page.span().address());
                chain = all;
            }
            owner.onStream(state.arena::close);
        } catch (DeviceException refused) {
            throw owner.abandon(refused, state.arena::close);
        }
        writable = tokens();
        return true;
    }

    private void stop() {
        releaseFrom(0);
        if (loading != null) {
            loading.close();
            loading = null;
        }
    }

    void requireOf(PagedKvCache cache) {
        requireActive();
        if (!cache.equals(owner)) {
            throw new IllegalArgumentException("a sequence of another paged cache");
        }
    }

    private void requireActive() {
        owner.requireOpen();
        if (closed || preempted != null) {
            throw new IllegalStateException(closed ? "the sequence has ended" : "the sequence is preempted");
        }
    }

    private void requireLoaded() {
        requireActive();
        if (loading != null) {
            throw new IllegalStateException("the sequence is being loaded; await all layers first");
        }
    }

    /// Ends it. Full pages stay as cached blocks; others are free. A second close does nothing.
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        stop();
        if (preempted != null) {
            preempted.arena.close();
        }
        owner.forget(this);
    }
}

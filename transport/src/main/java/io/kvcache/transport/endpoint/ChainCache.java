package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.endpoint.EndpointOptions.HeapLimits;
import io.kvcache.transport.endpoint.EndpointRequest.RequestException;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/// The chains that a client has sent over one connection, so that it need not send them again.
///
/// Their heap bytes are limited for each connection and for all connections together. To make room for a new
/// chain, the cache evicts the chains that were used least recently.
///
/// CHAIN has no reply. If a chain does not fit or was evicted, its slot keeps the reason. The server answers
/// requests about that chain, and about chains that extend it, with this reason.
///
/// **Threads.** Only the connection's thread fills slots. Any thread may [evict][#evictLeastRecentlyUsed] a chain.
/// The cache never holds its own lock while it reserves bytes of the shared budget.
final class ChainCache {

    /// Slots of a connection.
    static final int SLOT_COUNT = 16;

    /// Most bytes that a block takes: its digest, and the spare capacity of a chain that grows.
    static final int BLOCK_BYTES = 48;

    private static final Slot EMPTY = new Slot(null, 0, null);

    private final ClientSession session;
    private final HeapLimits limits;
    private final HeapBudget budget;
    private final List<Slot> slots = new ArrayList<>();
    private final long[] lastUse = new long[SLOT_COUNT];
    private long uses;
    private long reservedBytes;

    /// One slot.
    ///
    /// @param bytes that its chain takes
    /// @param requestException why the slot has no chain although the client sent one, else null
    private record Slot(
            @Nullable BlockChain chain,
            long bytes,
            @Nullable RequestException requestException) {}

    /// The chain of a request.
    ///
    /// @param cachedChain what its slot has
    /// @param bytes of the heap that this keeps
    record ResolvedChain(BlockChain chain, BlockChain cachedChain, long bytes) {}

    /// @param shared by all connections
    ChainCache(ClientSession session, HeapLimits limits, HeapBudget shared) {
        this.session = session;
        this.limits = limits;
        this.budget = shared;
        for (int i = 0; i < SLOT_COUNT; i++) {
            slots.add(EMPTY);
        }
        shared.register(this);
    }

    /// Reads CHAIN: `u8 slot, u8 source, u16 0, u32 namespace, u32 kept, u32 more, then for each 16 bytes
    /// key, i64 engine hash (big-endian)`. The slot becomes the first blocks of the source and more.
    void define(BodyReader body) throws ProtocolException {
        int slot = requireSlot(body.u8("slot"));
        int source = requireSlot(body.u8("source"));
        Namespace namespace = session.namespace(body.skip(Short.BYTES).count("namespace"));
        int kept = body.count("kept");
        long more = body.count("more");
        ByteBuffer named = body.slice("blocks", more * BlockChain.KEY_AND_HASH_BYTES);
        if (namespace == null || namespace.parts().isEmpty()) {
            throw new ProtocolException(
                    "a chain of a namespace without number or without blocks; allowed: those registered");
        }
        Slot from = touchSlot(source);
        if (kept > 0 && from.requestException != null) {
            refuse(slot, from.requestException);
            return;
        }
        BlockChain old = from.chain;
        if (kept > 0 && (old == null || kept > old.length() || !old.namespace().equals(namespace))) {
            throw new ProtocolException("kept = %s blocks of slot %s; allowed: 0 to %s of the same namespace"
                    .formatted(kept, source, old == null ? 0 : old.length()));
        }
        long bytes = (kept + more) * BLOCK_BYTES;
        set(slot, EMPTY);
        RequestException refusal = tryReserve(kept + more, bytes);
        if (refusal != null) {
            refuse(slot, refusal);
            return;
        }
        boolean told = false;
        try {
            set(slot, new Slot(extend(namespace, kept == 0 ? null : old, kept, named), bytes, null));
            told = true;
        } finally {
            if (!told) {
                budget.release(bytes);
            }
        }
    }

    private synchronized Slot touchSlot(int slot) {
        lastUse[slot] = ++uses;
        return slots.get(slot);
    }

    /// Fills the slot and releases the bytes of its previous chain. The caller has reserved those of the new one.
    private synchronized void set(int slot, Slot now) {
        long had = slots.set(slot, now).bytes;
        budget.release(had);
        reservedBytes += now.bytes - had;
        lastUse[slot] = ++uses;
    }

    private void refuse(int slot, RequestException why) {
        set(slot, new Slot(null, 0, why));
    }

    /// Reserves room for a chain. Returns null, or the reason for which it does not fit.
    private @Nullable RequestException tryReserve(long blocks, long bytes) {
        if (blocks > limits.chainBlocks()) {
            return RequestException.forChain(
                    Status.INVALID, "a chain of %s blocks; allowed: 0 to %s".formatted(blocks, limits.chainBlocks()));
        }
        if (bytes > limits.connectionBytes()) {
            return RequestException.forChain(
                    Status.BUSY,
                    "a chain of %s bytes; allowed for all of this connection: %s"
                            .formatted(bytes, limits.connectionBytes()));
        }
        boolean some = true;
        while (some && reservedBytes() + bytes > limits.connectionBytes()) {
            some = evictLeastRecentlyUsed();
        }
        return budget.reserve(bytes) ? null : RequestException.forChain(Status.BUSY, budgetFullMessage(budget));
    }

    static String budgetFullMessage(HeapBudget shared) {
        return "the chains of all connections take %s bytes; allowed: %s"
                .formatted(shared.reservedBytes(), shared.maxBytes());
    }

    /// Returns the bytes that its chains take.
    synchronized long reservedBytes() {
        return reservedBytes;
    }

    /// Evicts the chain that was used least recently. Returns whether the cache had one. Any thread may call it.
    synchronized boolean evictLeastRecentlyUsed() {
        int oldest = -1;
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            if (slots.get(slot).bytes > 0 && (oldest < 0 || lastUse[slot] < lastUse[oldest])) {
                oldest = slot;
            }
        }
        if (oldest >= 0) {
            refuse(oldest, RequestException.forChain(Status.BUSY, "the chain was given up for others; tell it again"));
        }
        return oldest >= 0;
    }

    private static BlockChain extend(Namespace namespace, @Nullable BlockChain old, int kept, ByteBuffer named)
            throws ProtocolException {
        try {
            return old == null
                    ? BlockChain.ofKeysAndHashes(namespace, named)
                    : old.prefix(kept).extendKeysAndHashes(named);
        } catch (IllegalArgumentException tooLong) {
            throw new ProtocolException(String.valueOf(tooLong.getMessage()));
        }
    }

    /// Reads `u8 slot, 3 × 0, u32 length`, and returns the chain.
    ///
    /// @throws RequestException when there was no room for it
    BlockChain read(BodyReader body) throws ProtocolException, RequestException {
        return resolve(body).chain;
    }

    /// As [#read], for a caller that keeps the chain for longer than its request is handled.
    ResolvedChain resolve(BodyReader body) throws ProtocolException, RequestException {
        int number = requireSlot(body.u8("slot"));
        int length = body.skip(3).count("length");
        Slot slot = touchSlot(number);
        if (slot.requestException != null) {
            throw slot.requestException;
        }
        BlockChain chain = slot.chain;
        if (chain == null || length > chain.length()) {
            throw new ProtocolException("%s blocks of slot %s; allowed: 0 to %s"
                    .formatted(length, number, chain == null ? 0 : chain.length()));
        }
        return new ResolvedChain(length == chain.length() ? chain : chain.prefix(length), chain, slot.bytes);
    }

    /// Releases everything, as the connection has ended.
    void onClosed() {
        budget.unregister(this);
        for (int slot = 0; slot < SLOT_COUNT; slot++) {
            set(slot, EMPTY);
        }
    }

    private static int requireSlot(int slot) throws ProtocolException {
        if (slot >= SLOT_COUNT) {
            throw new ProtocolException("slot = %s; allowed: 0 to %s".formatted(slot, SLOT_COUNT - 1));
        }
        return slot;
    }

    /// A chain that one request keeps while it waits.
    record RetainedChain(ChainRetention retention, ResolvedChain chain) {

        /// Reserves heap for it; returns whether there was room.
        boolean begin() {
            return retention.addWaiter(chain);
        }

        /// Releases its heap.
        void end() {
            retention.removeWaiter(chain);
        }
    }

    /// Chains that waiting requests of one connection keep alive, as the connection may define its slots anew
    /// meanwhile. A chain counts once, however many requests wait with it.
    ///
    /// **Threads.** Any. Its lock comes before that of the share.
    static final class ChainRetention {

        private final HeapBudget budget;
        private final IdentityHashMap<BlockChain, Integer> waiting = new IdentityHashMap<>();

        /// @param shared by all connections
        ChainRetention(HeapBudget shared) {
            this.budget = shared;
        }

        /// Returns a retained chain for one request.
        RetainedChain retain(ResolvedChain chain) {
            return new RetainedChain(this, chain);
        }

        private synchronized boolean addWaiter(ResolvedChain resolvedChain) {
            int others = waiting.getOrDefault(resolvedChain.cachedChain(), 0);
            boolean kept = others > 0 || budget.reserve(resolvedChain.bytes());
            if (kept) {
                waiting.put(resolvedChain.cachedChain(), others + 1);
            }
            return kept;
        }

        private synchronized void removeWaiter(ResolvedChain resolvedChain) {
            int left = waiting.getOrDefault(resolvedChain.cachedChain(), 0) - 1;
            if (left > 0) {
                waiting.put(resolvedChain.cachedChain(), left);
            } else {
                waiting.remove(resolvedChain.cachedChain());
                budget.release(resolvedChain.bytes());
            }
        }
    }

    /// Heap that all connections of an endpoint share. When it is full, the connection that uses most of it evicts
    /// its least recently used chain. So a new connection always finds room, and a greedy one takes it from
    /// itself.
    ///
    /// **Threads.** Any. Locks are taken in the order of this, then [ChainCache].
    static final class HeapBudget {

        private final long maxBytes;
        private final AtomicLong reservedBytes = new AtomicLong();
        private final Set<ChainCache> chainCaches = ConcurrentHashMap.newKeySet();

        /// @param maxBytes bytes
        HeapBudget(long maxBytes) {
            this.maxBytes = maxBytes;
        }

        /// Adds a connection, which may have to evict chains until it [leaves][#unregister].
        void register(ChainCache taker) {
            chainCaches.add(taker);
        }

        void unregister(ChainCache taker) {
            chainCaches.remove(taker);
        }

        /// Reserves bytes until their [release][#release]. Returns false if they do not fit even after all chains
        /// are evicted.
        boolean reserve(long bytes) {
            boolean there = tryReserveFree(bytes);
            while (!there && bytes <= maxBytes && reclaim()) {
                there = tryReserveFree(bytes);
            }
            return there;
        }

        private boolean tryReserveFree(long bytes) {
            long before = reservedBytes.get();
            while (bytes <= maxBytes - before) {
                if (reservedBytes.compareAndSet(before, before + bytes)) {
                    return true;
                }
                before = reservedBytes.get();
            }
            return false;
        }

        private synchronized boolean reclaim() {
            return chainCaches.stream()
                    .max(Comparator.comparingLong(ChainCache::reservedBytes))
                    .filter(ChainCache::evictLeastRecentlyUsed)
                    .isPresent();
        }

        /// Releases reserved bytes.
        void release(long bytes) {
            reservedBytes.addAndGet(-bytes);
        }

        /// Returns the reserved bytes.
        long reservedBytes() {
            return reservedBytes.get();
        }

        /// Returns the limit.
        long maxBytes() {
            return maxBytes;
        }
    }
}

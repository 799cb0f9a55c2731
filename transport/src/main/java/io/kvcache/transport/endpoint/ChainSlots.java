package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The chains that a client has told over one connection, so that it need not tell them again. They
/// take no more of the heap than a connection may, and all connections may: for one more, those
/// spoken of least recently are given up.
///
/// CHAIN has no reply. So of one that there is no room for, or that was given up, the slot
/// remembers why, which is what requests about it are answered, and whoever is told in its terms.
///
/// **Threads.** The connection's, which alone fills slots; any may have one [given up][#giveUp]. It
/// never holds its lock while it takes from what is shared.
final class ChainSlots {

    /// Slots of a connection.
    static final int COUNT = 16;

    /// What a block takes at most: a digest, and what a chain that grows keeps free.
    static final int BLOCK_BYTES = 48;

    private static final Slot EMPTY = new Slot(null, 0, null);

    private final Session session;
    private final HeapLimits limits;
    private final HeapShare shared;
    private final List<Slot> slots = new ArrayList<>();
    private final long[] lastUse = new long[COUNT];
    private long uses;
    private long taken;

    /// One slot.
    ///
    /// @param bytes that its chain takes
    /// @param refused why it has none, if one was told
    private record Slot(
            @Nullable BlockChain chain,
            long bytes,
            @Nullable Refused refused) {}

    /// A chain that is spoken of.
    ///
    /// @param whole what its slot has
    /// @param bytes of the heap that this keeps
    record Told(BlockChain chain, BlockChain whole, long bytes) {}

    /// @param shared by all connections
    ChainSlots(Session session, HeapLimits limits, HeapShare shared) {
        this.session = session;
        this.limits = limits;
        this.shared = shared;
        for (int i = 0; i < COUNT; i++) {
            slots.add(EMPTY);
        }
        shared.joins(this);
    }

    /// Reads CHAIN: `u8 slot, u8 source, u16 0, u32 namespace, u32 kept, u32 more, then for each 16 bytes
    /// key, i64 engine hash (big-endian)`. The slot becomes the first blocks of the source and more.
    void define(BodyReader body) throws Violation {
        int slot = slot(body.u8("slot"));
        int source = slot(body.u8("source"));
        Namespace namespace = session.namespace(body.skip(Short.BYTES).count("namespace"));
        int kept = body.count("kept");
        long more = body.count("more");
        ByteBuffer named = body.span("blocks", more * BlockChain.KEY_AND_HASH_BYTES);
        if (namespace == null || namespace.parts().isEmpty()) {
            throw new Violation("a chain of a namespace without number or without blocks; allowed: those registered");
        }
        Slot from = used(source);
        if (kept > 0 && from.refused != null) {
            refuse(slot, from.refused);
            return;
        }
        BlockChain old = from.chain;
        if (kept > 0 && (old == null || kept > old.length() || !old.namespace().equals(namespace))) {
            throw new Violation("kept = %d blocks of slot %d; allowed: 0 to %d of the same namespace"
                    .formatted(kept, source, old == null ? 0 : old.length()));
        }
        long bytes = (kept + more) * BLOCK_BYTES;
        set(slot, EMPTY);
        Refused refusal = room(kept + more, bytes);
        if (refusal != null) {
            refuse(slot, refusal);
            return;
        }
        boolean told = false;
        try {
            set(slot, new Slot(grown(namespace, kept == 0 ? null : old, kept, named), bytes, null));
            told = true;
        } finally {
            if (!told) {
                shared.give(bytes);
            }
        }
    }

    private synchronized Slot used(int slot) {
        lastUse[slot] = ++uses;
        return slots.get(slot);
    }

    /// Gives back what the slot had; what it gets has been taken.
    private synchronized void set(int slot, Slot now) {
        long had = slots.set(slot, now).bytes;
        shared.give(had);
        taken += now.bytes - had;
        lastUse[slot] = ++uses;
    }

    private void refuse(int slot, Refused why) {
        set(slot, new Slot(null, 0, why));
    }

    /// Takes room for a chain, or says why there is none.
    private @Nullable Refused room(long blocks, long bytes) {
        if (blocks > limits.chainBlocks()) {
            return Refused.ofChain(
                    Status.INVALID, "a chain of %d blocks; allowed: 0 to %d".formatted(blocks, limits.chainBlocks()));
        }
        if (bytes > limits.connectionBytes()) {
            return Refused.ofChain(
                    Status.BUSY,
                    "a chain of %d bytes; allowed for all of this connection: %d"
                            .formatted(bytes, limits.connectionBytes()));
        }
        boolean some = true;
        while (some && taken() + bytes > limits.connectionBytes()) {
            some = giveUp();
        }
        return shared.take(bytes) ? null : Refused.ofChain(Status.BUSY, full(shared));
    }

    static String full(HeapShare shared) {
        return "the chains of all connections take %d bytes; allowed: %d".formatted(shared.taken(), shared.most());
    }

    /// Bytes that its chains take.
    synchronized long taken() {
        return taken;
    }

    /// Gives up the chain that was spoken of least recently; answers whether there was one. Any
    /// thread.
    synchronized boolean giveUp() {
        int oldest = -1;
        for (int slot = 0; slot < COUNT; slot++) {
            if (slots.get(slot).bytes > 0 && (oldest < 0 || lastUse[slot] < lastUse[oldest])) {
                oldest = slot;
            }
        }
        if (oldest >= 0) {
            refuse(oldest, Refused.ofChain(Status.BUSY, "the chain was given up for others; tell it again"));
        }
        return oldest >= 0;
    }

    private static BlockChain grown(Namespace namespace, @Nullable BlockChain old, int kept, ByteBuffer named)
            throws Violation {
        try {
            return old == null
                    ? BlockChain.ofKeysAndHashes(namespace, named)
                    : old.prefix(kept).extendKeysAndHashes(named);
        } catch (IllegalArgumentException tooLong) {
            throw new Violation(String.valueOf(tooLong.getMessage()));
        }
    }

    /// Reads `u8 slot, 3 × 0, u32 length`: the chain that is meant.
    ///
    /// @throws Refused when there was no room for it
    BlockChain read(BodyReader body) throws Violation, Refused {
        return told(body).chain;
    }

    /// As [#read], for whoever keeps the chain for longer than its request is handled.
    Told told(BodyReader body) throws Violation, Refused {
        int number = slot(body.u8("slot"));
        int length = body.skip(3).count("length");
        Slot slot = used(number);
        if (slot.refused != null) {
            throw slot.refused;
        }
        BlockChain chain = slot.chain;
        if (chain == null || length > chain.length()) {
            throw new Violation("%d blocks of slot %d; allowed: 0 to %d"
                    .formatted(length, number, chain == null ? 0 : chain.length()));
        }
        return new Told(length == chain.length() ? chain : chain.prefix(length), chain, slot.bytes);
    }

    /// The connection is over.
    void closed() {
        shared.leaves(this);
        for (int slot = 0; slot < COUNT; slot++) {
            set(slot, EMPTY);
        }
    }

    private static int slot(int slot) throws Violation {
        if (slot >= COUNT) {
            throw new Violation("slot = %d; allowed: 0 to %d".formatted(slot, COUNT - 1));
        }
        return slot;
    }
}

package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.Violation;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The chains that a client has told over one connection, so that it need not tell them again.
final class ChainSlots {

    /// Slots of a connection.
    static final int COUNT = 16;

    private final Session session;
    private final List<@Nullable BlockChain> chains = new ArrayList<>();

    ChainSlots(Session session) {
        this.session = session;
        for (int i = 0; i < COUNT; i++) {
            chains.add(null);
        }
    }

    /// Reads CHAIN: `u8 slot, u8 source, u16 0, u32 namespace, u32 kept, u32 more, then for each 16 bytes
    /// key, i64 engine hash (big-endian)`. The slot becomes the first blocks of the source and more.
    void define(BodyReader body) throws Violation {
        int slot = slot(body.u8("slot"));
        int source = slot(body.u8("source"));
        Namespace namespace = session.namespace(body.skip(Short.BYTES).count("namespace"));
        int kept = body.count("kept");
        long more = body.count("more");
        ByteBuffer named = body.span("blocks", more * BlockChain.NAMED_BLOCK_BYTES);
        if (namespace == null || namespace.parts().isEmpty()) {
            throw new Violation("a chain of a namespace without number or without blocks; allowed: those registered");
        }
        BlockChain old = chains.get(source);
        if (kept > 0 && (old == null || kept > old.length() || !old.namespace().equals(namespace))) {
            throw new Violation("kept = %d blocks of slot %d; allowed: 0 to %d of the same namespace"
                    .formatted(kept, source, old == null ? 0 : old.length()));
        }
        chains.set(slot, grown(namespace, kept == 0 ? null : old, kept, named));
    }

    private static BlockChain grown(Namespace namespace, @Nullable BlockChain old, int kept, ByteBuffer named)
            throws Violation {
        try {
            return old == null
                    ? BlockChain.named(namespace, named)
                    : old.prefix(kept).extendNamed(named);
        } catch (IllegalArgumentException tooLong) {
            throw new Violation(String.valueOf(tooLong.getMessage()));
        }
    }

    /// Reads `u8 slot, 3 × 0, u32 length`: the chain that is meant.
    BlockChain read(BodyReader body) throws Violation {
        int slot = slot(body.u8("slot"));
        int length = body.skip(3).count("length");
        BlockChain chain = chains.get(slot);
        if (chain == null || length > chain.length()) {
            throw new Violation("%d blocks of slot %d; allowed: 0 to %d"
                    .formatted(length, slot, chain == null ? 0 : chain.length()));
        }
        return length == chain.length() ? chain : chain.prefix(length);
    }

    private static int slot(int slot) throws Violation {
        if (slot >= COUNT) {
            throw new Violation("slot = %d; allowed: 0 to %d".formatted(slot, COUNT - 1));
        }
        return slot;
    }
}

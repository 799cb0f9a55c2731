package io.kvcache.transport.client;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Chains that this connection has sent to the server. A chain that shares a prefix with one of them is sent
/// without it: a longer chain costs its new blocks, a fork the blocks after the fork.
///
/// A definition has no reply. The server rejects the next request about a chain that it did not take, or has
/// dropped since. The client then [relies][#invalidate] on none of its earlier definitions.
///
/// Not thread-safe, except for [#invalidate].
final class ChainDictionary {

    private static final int SLOTS = 16;

    /// Most keys of one frame, below the limit of a body.
    private static final int MAX_KEYS_PER_FRAME = 150_000;

    private final List<@Nullable DefinedChain> slots = new ArrayList<>();
    private final AtomicBoolean invalidated = new AtomicBoolean();
    private long uses;

    /// @param lastUse when it was last spoken of
    private record DefinedChain(BlockChain chain, int namespace, long lastUse) {}

    ChainDictionary() {
        for (int i = 0; i < SLOTS; i++) {
            slots.add(null);
        }
    }

    /// Slot of a chain, and the frames that must be sent before a request about it.
    record ChainReference(int slot, List<OutboundFrame> before) {

        /// Returns a request with those frames before it.
        OutboundFrame prependTo(OutboundFrame request) {
            OutboundFrame all = request;
            for (int i = before.size() - 1; i >= 0; i--) {
                all = all.precededBy(before.get(i));
            }
            return all;
        }
    }

    /// Handles the refusal of a request about a chain. If the chain may be the reason, all chains are defined
    /// anew, and the server is told to release its old ones. To do so once too often does no harm. Any thread.
    ///
    /// @return whether it may help to ask once more
    boolean invalidate(RpcException refusal) {
        if (refusal.mayConcernChain()) {
            invalidated.set(true);
        }
        return refusal.mayConcernChain() && refusal.isBusy();
    }

    /// @param namespace the session's number of its namespace
    ChainReference define(BlockChain chain, int namespace) {
        if (!invalidated.getAndSet(false)) {
            return defineSlot(chain, namespace);
        }
        List<OutboundFrame> before = clearingFrames();
        ChainReference anew = defineSlot(chain, namespace);
        before.addAll(anew.before);
        return new ChainReference(anew.slot, before);
    }

    private List<OutboundFrame> clearingFrames() {
        List<OutboundFrame> frames = new ArrayList<>();
        for (int slot = 0; slot < SLOTS; slot++) {
            DefinedChain defined = slots.set(slot, null);
            if (defined != null) {
                BodyWriter empty = new BodyWriter().u8(slot).u8(slot).u16(0).i32(defined.namespace);
                frames.add(empty.i32(0).i32(0).request(MessageType.CHAIN, 0, 0));
            }
        }
        return frames;
    }

    private ChainReference defineSlot(BlockChain chain, int namespace) {
        int nearest = 0;
        int most = 0;
        for (int slot = 0; slot < SLOTS && most < chain.length(); slot++) {
            int common = commonPrefix(slots.get(slot), chain, namespace);
            if (common > most) {
                most = common;
                nearest = slot;
            }
        }
        DefinedChain source = slots.get(nearest);
        if (source != null && most == chain.length()) {
            slots.set(nearest, new DefinedChain(source.chain, namespace, ++uses));
            return new ChainReference(nearest, List.of());
        }
        boolean grows = source != null && most > 0 && most == source.chain.length();
        int slot = grows ? nearest : leastRecentlyUsed();
        slots.set(slot, new DefinedChain(chain, namespace, ++uses));
        return new ChainReference(slot, definitionFrames(slot, nearest, namespace, chain, most));
    }

    private static int commonPrefix(@Nullable DefinedChain defined, BlockChain chain, int namespace) {
        return defined == null || defined.namespace != namespace ? 0 : defined.chain.commonPrefix(chain);
    }

    private int leastRecentlyUsed() {
        int oldest = 0;
        long least = Long.MAX_VALUE;
        for (int slot = 0; slot < SLOTS; slot++) {
            DefinedChain defined = slots.get(slot);
            long use = defined == null ? 0 : defined.lastUse;
            if (use < least) {
                least = use;
                oldest = slot;
            }
        }
        return oldest;
    }

    private static List<OutboundFrame> definitionFrames(
            int slot, int source, int namespace, BlockChain chain, int kept) {
        int defined = chain.length() - kept;
        if (defined > 0 && defined <= MAX_KEYS_PER_FRAME) {
            return List.of(definitionFrame(slot, source, namespace, chain, kept, chain.length()));
        }
        List<OutboundFrame> frames = new ArrayList<>();
        int from = kept;
        while (from < chain.length()) {
            int to = Math.min(chain.length(), from + MAX_KEYS_PER_FRAME);
            frames.add(definitionFrame(slot, frames.isEmpty() ? source : slot, namespace, chain, from, to));
            from = to;
        }
        return frames;
    }

    private static OutboundFrame definitionFrame(
            int slot, int source, int namespace, BlockChain chain, int from, int to) {
        BodyWriter body = new BodyWriter(16 + (to - from) * BlockChain.KEY_AND_HASH_BYTES);
        body.u8(slot).u8(source).u16(0);
        body.i32(namespace).i32(from).i32(to - from);
        for (int index = from; index < to; index++) {
            body.bigEndian(chain.keyHi(index)).bigEndian(chain.keyLo(index));
            body.bigEndian(chain.engineHash64(index));
        }
        return body.request(MessageType.CHAIN, 0, 0);
    }
}

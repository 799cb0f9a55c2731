package io.kvcache.server.zmq;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.EventEncoding;
import io.kvcache.server.config.EventHashes;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/// Events of one namespace as a batch in vLLM's schema, in MessagePack.
///
/// A batch is `[seconds, [event, ...], nil]`. Blocks of one chain that were stored one after the other
/// become one `BlockStored`, blocks that left one tier one after the other become one `BlockRemoved`.
/// The store does not know a block's tokens, so `token_ids` is empty: followers go by the hashes, as
/// they do for vLLM's own CPU tier.
///
/// @param encoding how each event is written
/// @param hashes how blocks are named
record VllmEvents(EventEncoding encoding, EventHashes hashes) {

    /// The payload of a batch.
    ///
    /// @param events of one namespace, at least one
    byte[] batch(double seconds, Namespace namespace, List<CacheEvent> events) {
        List<byte[]> written = new ArrayList<>();
        int from = 0;
        for (int to = 1; to <= events.size(); to++) {
            if (to == events.size() || !goesOn(events.get(to - 1), events.get(to))) {
                written.add(write(namespace, events.subList(from, to)));
                from = to;
            }
        }
        return batch(seconds, written);
    }

    /// The payload of a batch that says that nothing of what was said before holds any more.
    byte[] cleared(double seconds) {
        MsgpackWriter out = new MsgpackWriter();
        begin(out, "AllBlocksCleared", 0);
        return batch(seconds, List.of(out.toByteArray()));
    }

    private static byte[] batch(double seconds, List<byte[]> events) {
        MsgpackWriter out = new MsgpackWriter().array(3).float64(seconds).array(events.size());
        events.forEach(out::append);
        return out.nil().toByteArray();
    }

    private static boolean goesOn(CacheEvent before, CacheEvent next) {
        boolean alike = before.kind().enters() == next.kind().enters() && before.tier() == next.tier();
        boolean follows = next.depth() == before.depth() + 1
                && next.parentHi() == before.keyHi()
                && next.parentLo() == before.keyLo();
        return alike && (follows || !next.kind().enters());
    }

    private byte[] write(Namespace namespace, List<CacheEvent> run) {
        MsgpackWriter out = new MsgpackWriter();
        if (run.getFirst().kind().enters()) {
            stored(out, namespace, run);
        } else {
            begin(out, "BlockRemoved", 2);
            blockHashes(out, run);
            name(out, "medium").text(medium(run.getFirst().tier()));
        }
        return out.toByteArray();
    }

    private void stored(MsgpackWriter out, Namespace namespace, List<CacheEvent> run) {
        String adapter = namespace.adapter();
        begin(out, "BlockStored", adapter.isEmpty() ? 6 : 7);
        blockHashes(out, run);
        CacheEvent first = run.getFirst();
        name(out, "parent_block_hash");
        if (first.depth() == 0) {
            out.nil();
        } else {
            hash(out, first.parentEngineHash(), first.parentHi(), first.parentLo());
        }
        name(out, "token_ids").array(0);
        name(out, "block_size").integer(namespace.blockTokens());
        name(out, "lora_id").nil();
        name(out, "medium").text(medium(first.tier()));
        if (!adapter.isEmpty()) {
            name(out, "lora_name").text(adapter);
        }
    }

    private void begin(MsgpackWriter out, String type, int members) {
        if (encoding == EventEncoding.MAP) {
            out.map(1 + members).text("type").text(type);
        } else {
            out.array(1 + members).text(type);
        }
    }

    private MsgpackWriter name(MsgpackWriter out, String name) {
        return encoding == EventEncoding.MAP ? out.text(name) : out;
    }

    private void blockHashes(MsgpackWriter out, List<CacheEvent> run) {
        name(out, "block_hashes").array(run.size());
        run.forEach(event -> hash(out, event.engineHash(), event.keyHi(), event.keyLo()));
    }

    private void hash(MsgpackWriter out, long engineHash, long keyHi, long keyLo) {
        if (hashes == EventHashes.KEY) {
            out.binary(ByteBuffer.allocate(16).putLong(keyHi).putLong(keyLo).array());
        } else {
            out.unsigned(engineHash == 0 ? keyLo : engineHash);
        }
    }

    private static String medium(TierKind tier) {
        return switch (tier) {
            case DEVICE -> "GPU";
            case HOST -> "CPU";
            case DISK -> "STORAGE";
            case REMOTE -> "REMOTE";
        };
    }
}

package io.kvcache.server.zmq;

import io.kvcache.core.engine.EngineValueKey;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.EventsConfig.EventEncoding;
import io.kvcache.server.config.EventsConfig.EventHashes;
import io.kvcache.server.config.EventsConfig.EventMedia;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePacker;

/// Events of one namespace as a batch in vLLM's schema, in MessagePack.
///
/// A batch is `[seconds, [event, ...], nil]`. Blocks of one chain that were stored one after the other
/// become one `BlockStored`, blocks that left one tier one after the other become one `BlockRemoved`.
/// The store does not know a block's tokens, so `token_ids` is empty: followers go by the hashes, as
/// they do for vLLM's own CPU tier.
///
/// **Values** that an engine has stored under its own hashes ([EngineValueKey#hashIn]) are blocks as well. Which block
/// comes
/// before one is not known then; neither are tokens and group, unless the layout of the namespace has `tokens=16`, of
/// the only group, or `page=64`. vLLM tells blocks of its lower tiers alike, with a `block_size` of 0.
///
/// Every field that vLLM's classes require is written, nil where it has no value: a missing one makes
/// them refuse the batch. Of the fields with a default, `group_idx` is written, since followers of models with
/// several KV groups keep blocks by group, and in maps `locality` and `ownership`, by which they tell a store that
/// engines share from an engine's own memory. Older classes skip members that they do not know, in maps by name and
/// in arrays at the end.
///
/// @param encoding how each event is written
/// @param hashes how blocks are named
/// @param media whose names `medium` has
/// @param local whether only engines of this host reach the store
record VllmEventEncoder(EventEncoding encoding, EventHashes hashes, EventMedia media, boolean local) {

    /// As the tier is called in vLLM's settings.
    private static final String OWNERSHIP = "kvcache";

    private static final Pattern TOKENS = Pattern.compile(" (?:tokens|page)=(\\d{1,6})(?: |$)");
    private static final int UNKNOWN = -1;

    /// Returns whether an event is of something that an engine's follower knows: a block, or a value with an engine's
    /// hash.
    static boolean isBlock(Namespace namespace, CacheEvent event) {
        return !namespace.parts().isEmpty() || event.engineHash() != 0;
    }

    /// The payload of a batch.
    ///
    /// @param events of one namespace, at least one
    byte[] encodeBatch(double seconds, Namespace namespace, List<CacheEvent> events) {
        List<List<CacheEvent>> runs = groupByChain(events);
        return encodeBatch(seconds, runs.size(), out -> {
            for (List<CacheEvent> run : runs) {
                write(out, namespace, run);
            }
        });
    }

    /// Returns the payload of a batch that revokes all earlier events.
    byte[] encodeCleared(double seconds) {
        return encodeBatch(seconds, 1, out -> begin(out, "AllBlocksCleared", 0));
    }

    private interface EventWriter {
        void write(MessagePacker out) throws IOException;
    }

    private static byte[] encodeBatch(double seconds, int count, EventWriter eventWriter) {
        try (MessageBufferPacker out = MessagePack.newDefaultBufferPacker()) {
            out.packArrayHeader(3).packDouble(seconds).packArrayHeader(count);
            eventWriter.write(out);
            out.packNil();
            return out.toByteArray();
        } catch (IOException impossible) {
            throw new UncheckedIOException("heap memory was not written", impossible);
        }
    }

    private static List<List<CacheEvent>> groupByChain(List<CacheEvent> events) {
        List<List<CacheEvent>> runs = new ArrayList<>();
        int from = 0;
        for (int to = 1; to <= events.size(); to++) {
            if (to == events.size() || !continuesChain(events.get(to - 1), events.get(to))) {
                runs.add(events.subList(from, to));
                from = to;
            }
        }
        return runs;
    }

    private static boolean continuesChain(CacheEvent before, CacheEvent next) {
        boolean alike = before.kind().isAddition() == next.kind().isAddition() && before.tier() == next.tier();
        boolean follows = next.depth() == before.depth() + 1
                && next.parentHi() == before.keyHi()
                && next.parentLo() == before.keyLo();
        return alike && (follows || !next.kind().isAddition());
    }

    private void write(MessagePacker out, Namespace namespace, List<CacheEvent> run) throws IOException {
        if (run.getFirst().kind().isAddition()) {
            stored(out, namespace, run);
        } else {
            begin(out, "BlockRemoved", encoding == EventEncoding.MAP ? 5 : 3);
            blockHashes(out, namespace, run);
            name(out, "medium").packString(medium(run.getFirst().tier()));
            groupAndPlace(out, namespace);
        }
    }

    private void stored(MessagePacker out, Namespace namespace, List<CacheEvent> run) throws IOException {
        String adapter = namespace.adapter();
        begin(out, "BlockStored", encoding == EventEncoding.MAP ? 10 : 9);
        blockHashes(out, namespace, run);
        CacheEvent first = run.getFirst();
        name(out, "parent_block_hash");
        if (first.depth() == 0) {
            out.packNil();
        } else {
            hash(out, namespace, first.parentEngineHash(), first.parentHi(), first.parentLo());
        }
        name(out, "token_ids").packArrayHeader(0);
        name(out, "block_size").packInt(Math.max(0, blockTokens(namespace)));
        name(out, "lora_id").packNil();
        name(out, "medium").packString(medium(first.tier()));
        name(out, "lora_name");
        if (adapter.isEmpty()) {
            out.packNil();
        } else {
            out.packString(adapter);
        }
        if (encoding == EventEncoding.ARRAY) {
            out.packNil(); // extra_keys
        }
        groupAndPlace(out, namespace);
    }

    private void groupAndPlace(MessagePacker out, Namespace namespace) throws IOException {
        name(out, "group_idx");
        if (!namespace.parts().isEmpty()) {
            out.packInt(namespace.parts().getFirst().group());
        } else if (blockTokens(namespace) == UNKNOWN) {
            out.packNil();
        } else {
            out.packInt(0);
        }
        if (encoding == EventEncoding.MAP) {
            name(out, "locality").packString(local ? "LOCAL" : "REMOTE");
            name(out, "ownership").packString(OWNERSHIP);
        }
    }

    /// Tokens of a block, or [#UNKNOWN].
    private static int blockTokens(Namespace namespace) {
        if (!namespace.parts().isEmpty()) {
            return namespace.blockTokens();
        }
        Matcher found = TOKENS.matcher(namespace.layout());
        return found.find() ? Integer.parseInt(found.group(1)) : UNKNOWN;
    }

    private void begin(MessagePacker out, String type, int members) throws IOException {
        if (encoding == EventEncoding.MAP) {
            out.packMapHeader(1 + members).packString("type").packString(type);
        } else {
            out.packArrayHeader(1 + members).packString(type);
        }
    }

    private MessagePacker name(MessagePacker out, String name) throws IOException {
        return encoding == EventEncoding.MAP ? out.packString(name) : out;
    }

    private void blockHashes(MessagePacker out, Namespace namespace, List<CacheEvent> run) throws IOException {
        name(out, "block_hashes").packArrayHeader(run.size());
        for (CacheEvent event : run) {
            hash(out, namespace, event.engineHash(), event.keyHi(), event.keyLo());
        }
    }

    private void hash(MessagePacker out, Namespace namespace, long engineHash, long keyHi, long keyLo)
            throws IOException {
        if (hashes == EventHashes.KEY) {
            out.packBinaryHeader(16);
            out.addPayload(ByteBuffer.allocate(16).putLong(keyHi).putLong(keyLo).array());
        } else if (EngineValueKey.isSigned(namespace)) {
            out.packLong(engineHash);
        } else {
            unsigned(out, engineHash == 0 ? keyLo : engineHash);
        }
    }

    /// @param value all 64 bits count
    private static void unsigned(MessagePacker out, long value) throws IOException {
        if (value >= 0) {
            out.packLong(value);
        } else {
            out.packBigInteger(BigInteger.valueOf(value & Long.MAX_VALUE).setBit(Long.SIZE - 1));
        }
    }

    private String medium(TierKind tier) {
        boolean vllm = media == EventMedia.VLLM;
        return switch (tier) {
            case DEVICE -> "GPU";
            case HOST -> vllm ? "CPU" : "CPU_PINNED";
            case DISK -> vllm ? "STORAGE" : "DISK";
            case REMOTE -> vllm ? "REMOTE" : "EXTERNAL";
        };
    }
}

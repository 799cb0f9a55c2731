package io.kvcache.transport.wire;

import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.time.Timeouts;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// What is said of objects: `u32 namespace, u32 count`, the hint, and as many keys, `u32 bytes` and
/// these.
///
/// The hint is as [HintCodec] has it, with 0 for the block, and of a weight `u8` in 255ths and 7
/// reserved. Keys lie behind it, so whoever does not know the kind does not look for them.
public final class ObjectHintCodec {

    /// Keys of one message, so that a server is not long with one.
    public static final int MAX_KEYS = 8192;

    /// What a writer puts into one message at most, of keys with their lengths.
    public static final int MAX_KEY_BYTES = 2 << 20;

    private static final float WEIGHT_SCALE = 255;
    private static final int WEIGHT_PADDING_BYTES = 7;

    private ObjectHintCodec() {}

    /// Writes what is behind the namespace's number.
    ///
    /// @param keys at most [#MAX_KEYS]
    public static void write(ObjectHint hint, List<byte[]> keys, BodyWriter to) {
        to.i32(keys.size());
        switch (hint) {
            case ObjectHint.Expect expect -> head(to, HintCodec.EXPECT, Timeouts.toNanos(expect.delay()));
            case ObjectHint.Pin pin -> head(to, HintCodec.PIN, Timeouts.toNanos(pin.time()));
            case ObjectHint.Forget _ -> head(to, HintCodec.FORGET, 0);
            case ObjectHint.Label label -> HintCodec.write(label.label(), head(to, HintCodec.LABEL, 0));
            case ObjectHint.Weigh weigh ->
                head(to, HintCodec.WEIGH, 0)
                        .u8(Math.round(weigh.weight() * WEIGHT_SCALE))
                        .bytes(new byte[WEIGHT_PADDING_BYTES]);
            case ObjectHint.Expire expire -> head(to, HintCodec.EXPIRE, Timeouts.toNanos(expire.delay()));
        }
        keys.forEach(key -> to.i32(key.length).bytes(key));
    }

    private static BodyWriter head(BodyWriter to, int kind, long nanos) {
        return to.i32(kind).i32(0).i64(nanos);
    }

    /// What was said.
    ///
    /// @param hint null for a kind that is not known here; there are no keys then
    public record DecodedObjectHint(@Nullable ObjectHint hint, List<byte[]> keys) {}

    /// Reads what is behind the namespace's number.
    public static DecodedObjectHint read(BodyReader from) throws ProtocolException {
        int count = from.count("keys");
        if (count > MAX_KEYS) {
            throw new ProtocolException("keys = %d; allowed: 0 to %d".formatted(count, MAX_KEYS));
        }
        int kind = from.u8("kind");
        Duration nanos = Duration.ofNanos(from.skip(3).skip(Integer.BYTES).nonNegativeLong("nanos"));
        ObjectHint hint = switch (kind) {
            case HintCodec.EXPECT -> new ObjectHint.Expect(nanos);
            case HintCodec.PIN -> new ObjectHint.Pin(nanos);
            case HintCodec.FORGET -> new ObjectHint.Forget();
            case HintCodec.LABEL -> new ObjectHint.Label(HintCodec.label(from));
            case HintCodec.WEIGH -> weight(from);
            case HintCodec.EXPIRE -> new ObjectHint.Expire(nanos);
            default -> null;
        };
        List<byte[]> keys = new ArrayList<>();
        for (int i = 0; i < count && hint != null; i++) {
            keys.add(key(from));
        }
        return new DecodedObjectHint(hint, keys);
    }

    private static ObjectHint weight(BodyReader from) throws ProtocolException {
        float weight = from.u8("weight") / WEIGHT_SCALE;
        from.skip(WEIGHT_PADDING_BYTES);
        return new ObjectHint.Weigh(weight);
    }

    private static byte[] key(BodyReader from) throws ProtocolException {
        int bytes = from.count("key bytes");
        if (bytes < 1 || bytes > KvCache.MAX_OBJECT_KEY_BYTES) {
            throw new ProtocolException(
                    "key bytes = %d; allowed: 1 to %d".formatted(bytes, KvCache.MAX_OBJECT_KEY_BYTES));
        }
        return from.bytes("key", bytes);
    }
}

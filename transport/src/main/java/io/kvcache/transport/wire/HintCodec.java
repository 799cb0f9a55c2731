package io.kvcache.transport.wire;

import io.kvcache.core.Hint;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.time.Timeouts;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Hints, behind the chain that they are about.
///
/// `u8 kind, 3 reserved, u32 from, u64 nanoseconds`, and behind that for a label `u8 kind of
/// request, u8 last, u16 reserved, u32 turn, u64 session`, for weights `u32 count, u32 reserved`
/// and a byte for each, in 255ths.
///
/// **About objects** it is `u32 namespace, u32 count`, the hint, and as many keys, `u32 bytes` and these. The hint
/// has 0 for the block, and of a weight `u8` in 255ths and 7 reserved. Keys lie behind it, so a reader that does
/// not know the kind does not look for them.
public final class HintCodec {

    static final int EXPECT = 0;
    static final int PIN = 1;
    static final int FORGET = 2;
    static final int LABEL = 3;
    static final int WEIGH = 4;
    static final int EXPIRE = 5;

    /// Most bytes of keys, with their lengths, that a writer puts into one message.
    public static final int MAX_KEY_BYTES = 2 << 20;

    private static final float WEIGHT_SCALE = 255;
    private static final int WEIGHT_PADDING_BYTES = 7;

    private static final DecodedHint UNKNOWN = chain -> null;

    private HintCodec() {}

    /// A hint that was read; of which chain is told apart.
    @FunctionalInterface
    public interface DecodedHint {

        /// The hint about a chain, or null for a kind that is not known here.
        ///
        /// @throws IllegalArgumentException when the hint does not fit the chain
        @Nullable
        Hint forChain(BlockChain chain);
    }

    public static void write(Hint hint, BodyWriter to) {
        switch (hint) {
            case Hint.Expect expect -> to.i32(EXPECT).i32(0).i64(Timeouts.toNanos(expect.delay()));
            case Hint.Pin pin -> to.i32(PIN).i32(0).i64(Timeouts.toNanos(pin.time()));
            case Hint.Forget forget -> to.i32(FORGET).i32(forget.from()).i64(0);
            case Hint.Label label ->
                write(label.label(), to.i32(LABEL).i32(label.from()).i64(0));
            case Hint.Weigh weigh ->
                write(weigh.weights(), to.i32(WEIGH).i32(weigh.from()).i64(0));
            case Hint.Expire expire -> to.i32(EXPIRE).i32(expire.from()).i64(Timeouts.toNanos(expire.delay()));
        }
    }

    static void write(RequestLabel label, BodyWriter to) {
        to.u8(label.kind().code()).u8(label.last() ? 1 : 0).u16(0);
        to.i32(label.turn()).i64(label.session());
    }

    private static void write(List<Float> weights, BodyWriter to) {
        to.i32(weights.size()).i32(0);
        weights.forEach(weight -> to.u8(Math.round(weight * WEIGHT_SCALE)));
    }

    /// Reads a hint. A kind that is not known is read as that.
    public static DecodedHint read(BodyReader from) throws ProtocolException {
        int kind = from.u8("kind");
        int first = from.skip(3).count("from");
        Duration nanos = Duration.ofNanos(from.nonNegativeLong("nanos"));
        return switch (kind) {
            case EXPECT -> chain -> new Hint.Expect(chain, nanos);
            case PIN -> chain -> new Hint.Pin(chain, nanos);
            case FORGET -> chain -> new Hint.Forget(chain, first);
            case LABEL -> {
                RequestLabel label = label(from);
                yield chain -> new Hint.Label(chain, first, label);
            }
            case WEIGH -> {
                byte[] weights = weights(from);
                yield chain -> weigh(chain, first, weights);
            }
            case EXPIRE -> chain -> new Hint.Expire(chain, first, nanos);
            default -> UNKNOWN;
        };
    }

    static RequestLabel label(BodyReader from) throws ProtocolException {
        RequestKind kind = RequestKind.of(from.u8("kind of request"));
        boolean last = from.u8("last") != 0;
        int turn = from.skip(Short.BYTES).count("turn");
        return new RequestLabel(kind, from.i64("session"), turn, last);
    }

    private static byte[] weights(BodyReader from) throws ProtocolException {
        return from.bytes("weights", weightsOf(from));
    }

    /// Weights take many times as much here as in a frame, so a client gets no more of them than its chain has
    /// blocks, which count towards its share of the heap.
    private static Hint weigh(BlockChain chain, int first, byte[] told) {
        if (told.length > Math.max(0, chain.length() - first)) {
            throw new IllegalArgumentException(
                    told.length + " weights from block " + first + " on; the chain has " + chain.length() + " blocks");
        }
        List<Float> weights = new ArrayList<>(told.length);
        for (byte weight : told) {
            weights.add((weight & 0xFF) / WEIGHT_SCALE);
        }
        return new Hint.Weigh(chain, first, weights);
    }

    private static int weightsOf(BodyReader from) throws ProtocolException {
        int count = from.count("count");
        from.skip(Integer.BYTES);
        return count;
    }

    /// Writes a hint about objects, behind the number of their namespace.
    ///
    /// @param keys at most [ObjectKeysCodec#MAX_KEYS]
    public static void write(ObjectHint hint, List<byte[]> keys, BodyWriter to) {
        to.i32(keys.size());
        switch (hint) {
            case ObjectHint.Expect expect -> head(to, EXPECT, Timeouts.toNanos(expect.delay()));
            case ObjectHint.Pin pin -> head(to, PIN, Timeouts.toNanos(pin.time()));
            case ObjectHint.Forget _ -> head(to, FORGET, 0);
            case ObjectHint.Label label -> write(label.label(), head(to, LABEL, 0));
            case ObjectHint.Weigh weigh ->
                head(to, WEIGH, 0).u8(Math.round(weigh.weight() * WEIGHT_SCALE)).bytes(new byte[WEIGHT_PADDING_BYTES]);
            case ObjectHint.Expire expire -> head(to, EXPIRE, Timeouts.toNanos(expire.delay()));
        }
        ObjectKeysCodec.write(keys, to);
    }

    private static BodyWriter head(BodyWriter to, int kind, long nanos) {
        return to.i32(kind).i32(0).i64(nanos);
    }

    /// A decoded hint about objects.
    ///
    /// @param hint null for a kind that this version does not know; then the keys are empty
    public record DecodedObjectHint(@Nullable ObjectHint hint, List<byte[]> keys) {}

    /// Reads a hint about objects, behind the number of their namespace.
    public static DecodedObjectHint readObjects(BodyReader from) throws ProtocolException {
        int count = ObjectKeysCodec.readCount(from);
        int kind = from.u8("kind");
        Duration nanos = Duration.ofNanos(from.skip(3).skip(Integer.BYTES).nonNegativeLong("nanos"));
        ObjectHint hint = switch (kind) {
            case EXPECT -> new ObjectHint.Expect(nanos);
            case PIN -> new ObjectHint.Pin(nanos);
            case FORGET -> new ObjectHint.Forget();
            case LABEL -> new ObjectHint.Label(label(from));
            case WEIGH -> weight(from);
            case EXPIRE -> new ObjectHint.Expire(nanos);
            default -> null;
        };
        return new DecodedObjectHint(hint, hint == null ? List.of() : ObjectKeysCodec.read(from, count));
    }

    private static ObjectHint weight(BodyReader from) throws ProtocolException {
        float weight = from.u8("weight") / WEIGHT_SCALE;
        from.skip(WEIGHT_PADDING_BYTES);
        return new ObjectHint.Weigh(weight);
    }
}

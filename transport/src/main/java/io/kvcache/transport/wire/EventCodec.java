package io.kvcache.transport.wire;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import java.util.List;

/// One event in 72 bytes.
///
/// ```
///  0 i64 sequence   8 u8 kind   9 u8 tier   10 u16 0   12 u32 namespace   16 key   32 parent's key
/// 48 u32 depth     52 u32 0    56 u64 engine hash    64 u64 parent's engine hash
/// ```
public final class EventCodec {

    public static final int BYTES = 72;

    /// By their codes. To a client that follows over the wire a removal for a quota is a drop.
    private static final List<EventKind> KINDS =
            List.of(EventKind.STORED, EventKind.EVICTED, EventKind.DROPPED, EventKind.REPLACED);

    /// By their codes.
    private static final List<TierKind> TIERS = List.of(TierKind.DEVICE, TierKind.HOST, TierKind.DISK, TierKind.REMOTE);

    private EventCodec() {}

    public static void write(CacheEvent event, BodyWriter to) {
        EventKind kind = event.kind() == EventKind.QUOTA ? EventKind.DROPPED : event.kind();
        to.i64(event.sequence()).oneOf(kind, KINDS).oneOf(event.tier(), TIERS).u16(0);
        to.i32(event.namespaceId()).bigEndian(event.keyHi()).bigEndian(event.keyLo());
        to.bigEndian(event.parentHi()).bigEndian(event.parentLo());
        to.i32(event.depth()).i32(0).i64(event.engineHash()).i64(event.parentEngineHash());
    }

    public static CacheEvent read(BodyReader from) throws ProtocolException {
        long sequence = from.i64("sequence");
        EventKind kind = from.oneOf("event kind", KINDS);
        TierKind tier = from.oneOf("tier", TIERS);
        int namespace = from.skip(Short.BYTES).count("namespace");
        long keyHi = bigEndian(from);
        long keyLo = bigEndian(from);
        long parentHi = bigEndian(from);
        long parentLo = bigEndian(from);
        int depth = from.count("depth");
        long engineHash = from.skip(Integer.BYTES).i64("engine hash");
        long parentEngineHash = from.i64("parent's engine hash");
        return new CacheEvent(
                sequence, kind, tier, namespace, keyHi, keyLo, parentHi, parentLo, depth, engineHash, parentEngineHash);
    }

    private static long bigEndian(BodyReader from) throws ProtocolException {
        return Long.reverseBytes(from.i64("key"));
    }
}

package io.kvcache.transport.wire;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;

/// One event in 72 bytes.
///
/// ```
///  0 i64 sequence   8 u8 kind   9 u8 tier   10 u16 0   12 u32 namespace   16 key   32 parent's key
/// 48 u32 depth     52 u32 0    56 u64 engine hash    64 u64 parent's engine hash
/// ```
public final class EventCodec {

    public static final int BYTES = 72;

    private EventCodec() {}

    public static void write(CacheEvent event, BodyWriter to) {
        to.i64(event.sequence()).u8(kind(event.kind())).u8(tier(event.tier())).u16(0);
        to.i32(event.namespaceId()).bigEndian(event.keyHi()).bigEndian(event.keyLo());
        to.bigEndian(event.parentHi()).bigEndian(event.parentLo());
        to.i32(event.depth()).i32(0).i64(event.engineHash()).i64(event.parentEngineHash());
    }

    public static CacheEvent read(BodyReader from) throws ProtocolException {
        long sequence = from.i64("sequence");
        EventKind kind = kind(from.u8("kind"));
        TierKind tier = tier(from.u8("tier"));
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

    private static int kind(EventKind kind) {
        return switch (kind) {
            case STORED -> 0;
            case EVICTED -> 1;
            case DROPPED, QUOTA -> 2; // who follows over the wire need not know of quotas
            case REPLACED -> 3;
        };
    }

    private static EventKind kind(int code) throws ProtocolException {
        return switch (code) {
            case 0 -> EventKind.STORED;
            case 1 -> EventKind.EVICTED;
            case 2 -> EventKind.DROPPED;
            case 3 -> EventKind.REPLACED;
            default -> throw new ProtocolException("event kind = " + code + "; allowed: 0 to 3");
        };
    }

    private static int tier(TierKind tier) {
        return switch (tier) {
            case DEVICE -> 0;
            case HOST -> 1;
            case DISK -> 2;
            case REMOTE -> 3;
        };
    }

    private static TierKind tier(int code) throws ProtocolException {
        return switch (code) {
            case 0 -> TierKind.DEVICE;
            case 1 -> TierKind.HOST;
            case 2 -> TierKind.DISK;
            case 3 -> TierKind.REMOTE;
            default -> throw new ProtocolException("tier = " + code + "; allowed: 0 to 3");
        };
    }
}

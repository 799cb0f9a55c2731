package io.kvcache.transport.wire;

import io.kvcache.core.PutOutcome;
import java.util.ArrayList;
import java.util.List;

/// A request to copy between a region and objects: `u32 region, u8 direction, 3 × 0, u32 namespace, u32 count, u64
/// timeout, u64 until`, and for each object `u32 key bytes, u32 spans, key`, and for each span `u64 offset, u64 bytes`.
///
/// @param direction which way the bytes go
/// @param namespace its number in the session
/// @param timeoutNanos how long a load waits for objects on disk
/// @param untilNanos the time of the host's monotonic clock after which the client uses its memory for something else;
///     0 if it leaves it alone until the reply
public record CopyRequest(
        int region, Direction direction, int namespace, long timeoutNanos, long untilNanos, List<Item> items) {

    /// Which way bytes go; the code is the place in the order.
    public enum Direction {
        LOAD,
        STORE
    }

    private static final List<Result> RESULTS = List.of(Result.values());

    /// What became of one object; the code is the place in the order.
    public enum Result {
        COPIED,
        /// Of a store: a value of this size is there, and was kept.
        PRESENT,
        /// Of a load: there is no such object, or it did not arrive in time.
        ABSENT,
        /// Of a load: the object has another size.
        OTHER_SIZE,
        /// Of a store.
        NO_ROOM,
        /// Of a store: the policy expects more of what would go for it.
        DECLINED;

        /// The result of a put that reserved nothing.
        public static Result of(PutOutcome outcome) {
            return switch (outcome) {
                case PRESENT -> PRESENT;
                case DECLINED -> DECLINED;
                case RESERVED, BUSY, FOREIGN, NO_PARENT, NO_ROOM -> NO_ROOM;
            };
        }
    }

    /// A span of a region.
    ///
    /// @param offset in bytes from its start
    public record Span(long offset, long bytes) {}

    /// One object and where its bytes lie in the region, in order.
    ///
    /// @param bytes of all spans
    @SuppressWarnings("ArrayRecordComponent") // never compared
    public record Item(byte[] key, List<Span> spans, long bytes) {}

    public static CopyRequest read(BodyReader from) throws ProtocolException {
        int region = from.count("region");
        Direction direction = from.oneOf("direction", List.of(Direction.values()));
        int namespace = from.skip(3).count("namespace");
        int count = ObjectKeysCodec.readCount(from);
        long timeout = from.nonNegativeLong("timeout");
        long until = from.nonNegativeLong("until");
        List<Item> items = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            items.add(item(from));
        }
        return new CopyRequest(region, direction, namespace, timeout, until, items);
    }

    private static Item item(BodyReader from) throws ProtocolException {
        int keyBytes = ObjectKeysCodec.readBytes(from);
        int count = from.count("spans");
        byte[] key = from.bytes("key", keyBytes);
        List<Span> spans = new ArrayList<>();
        long bytes = 0;
        for (int i = 0; i < count; i++) {
            Span span = new Span(from.nonNegativeLong("offset"), from.nonNegativeLong("bytes"));
            spans.add(span);
            bytes = Math.addExact(bytes, Math.min(span.bytes(), Long.MAX_VALUE - bytes));
        }
        return new Item(key, spans, bytes);
    }

    /// The reply: `u32 count, u32 0`, and a byte for each object.
    public static BodyWriter reply(List<Result> results) {
        BodyWriter reply =
                new BodyWriter(8 + results.size()).i32(results.size()).i32(0);
        results.forEach(result -> reply.oneOf(result, RESULTS));
        return reply;
    }
}

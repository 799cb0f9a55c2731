package io.kvcache.transport.wire;

import io.kvcache.core.KvCache;
import java.util.ArrayList;
import java.util.List;

/// Keys of objects in a message: `u32 bytes` and these for each, behind their `u32 count`, and perhaps other fields.
public final class ObjectKeysCodec {

    /// Keys of one message, so that a server is not long with one.
    public static final int MAX_KEYS = 8192;

    private ObjectKeysCodec() {}

    public static void write(List<byte[]> keys, BodyWriter to) {
        keys.forEach(key -> to.i32(key.length).bytes(key));
    }

    /// Reads how many keys a message has.
    public static int readCount(BodyReader from) throws ProtocolException {
        int count = from.count("keys");
        if (count > MAX_KEYS) {
            throw new ProtocolException("keys = %s; allowed: 0 to %s".formatted(count, MAX_KEYS));
        }
        return count;
    }

    /// Reads the given number of keys.
    public static List<byte[]> read(BodyReader from, int count) throws ProtocolException {
        List<byte[]> keys = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            keys.add(from.bytes("key", readBytes(from)));
        }
        return keys;
    }

    /// Reads the length of a key.
    static int readBytes(BodyReader from) throws ProtocolException {
        int bytes = from.count("key bytes");
        if (bytes < 1 || bytes > KvCache.MAX_OBJECT_KEY_BYTES) {
            throw new ProtocolException(
                    "key bytes = %s; allowed: 1 to %s".formatted(bytes, KvCache.MAX_OBJECT_KEY_BYTES));
        }
        return bytes;
    }
}

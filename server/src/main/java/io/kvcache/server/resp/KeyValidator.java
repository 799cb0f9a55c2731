package io.kvcache.server.resp;

import io.kvcache.server.keyspace.Keyspace;

/// Keys of a request, checked.
final class KeyValidator {

    private KeyValidator() {}

    /// Whether there can be such a key at all; where not, it simply is not there.
    static boolean isValid(byte[] key) {
        return key.length >= 1 && key.length <= Keyspace.MAX_KEY_BYTES;
    }
}

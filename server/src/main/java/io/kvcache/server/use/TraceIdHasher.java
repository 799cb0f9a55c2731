package io.kvcache.server.use;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.Map;

/// What stands for keys and namespaces in a trace.
///
/// An id is the first 63 bits of a SHA-256 over 32 random bytes, which are made for this trace and not kept, and the
/// key. So equal keys have equal ids in one trace, and nobody can try out whether a key he knows is in it. Among a
/// million keys two have the same id with a chance of one in 18 million.
final class TraceIdHasher {

    private static final int SALT_BYTES = 32;

    private final MessageDigest salted;
    private final Map<Namespace, Integer> namespaces = new HashMap<>();

    TraceIdHasher() {
        byte[] salt = new byte[SALT_BYTES];
        new SecureRandom().nextBytes(salt);
        try {
            salted = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException impossible) {
            throw new IllegalStateException(impossible); // every JDK has it
        }
        salted.update(salt);
    }

    /// What stands for a key, 0 to 2^63 - 1.
    long idOf(long hi, long lo) {
        try {
            MessageDigest digest = (MessageDigest) salted.clone();
            digest.update(
                    ByteBuffer.allocate(BlockKey.BYTES).putLong(hi).putLong(lo).flip());
            return ByteBuffer.wrap(digest.digest()).getLong() >>> 1;
        } catch (CloneNotSupportedException impossible) {
            throw new IllegalStateException(impossible); // the JDK's own can be cloned
        }
    }

    /// Whether a namespace has no number yet.
    boolean isNew(Namespace namespace) {
        return !namespaces.containsKey(namespace);
    }

    /// A namespace's number, in the order of their first uses.
    int idOf(Namespace namespace) {
        return namespaces.computeIfAbsent(namespace, _ -> namespaces.size());
    }
}

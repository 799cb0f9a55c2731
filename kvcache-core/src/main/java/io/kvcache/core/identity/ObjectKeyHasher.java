package io.kvcache.core.identity;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/// Makes the names of objects on one thread, and keeps the last one: a caller that puts or gets an object
/// asks for its name in several places, one after another, and the digest costs ten times the
/// comparison.
///
/// What is digested is put together in one array, which then is also what the next key is compared
/// with: a copy, so that an array that its owner has changed since is not taken for what it was.
///
/// **Threads.** The one that it is of.
final class ObjectKeyHasher {

    private static final byte[] TAG = "kvcache object v1\0".getBytes(StandardCharsets.US_ASCII);
    private static final int KEY_AT = TAG.length + Sha256.BYTES;

    /// Enough for most keys; the array grows with the longest that comes.
    private static final int FIRST_KEY_BYTES = 128;

    private static final ThreadLocal<ObjectKeyHasher> OF_THREAD = ThreadLocal.withInitial(ObjectKeyHasher::new);

    private final MessageDigest sha = Sha256.newDigest();
    private final byte[] digest = new byte[Sha256.BYTES];
    private byte[] named = Arrays.copyOf(TAG, KEY_AT + FIRST_KEY_BYTES);
    private int end;
    private @Nullable Namespace namespace;
    private BlockKey name = new BlockKey(0, 0);

    static ObjectKeyHasher forCurrentThread() {
        return OF_THREAD.get();
    }

    /// The name of a key whose length was checked.
    BlockKey hash(Namespace of, byte[] key) {
        if (isSameAsLast(of, key)) {
            return name;
        }
        namespace = null; // until all of it is true of this key
        end = KEY_AT + key.length;
        if (end > named.length) {
            named = Arrays.copyOf(TAG, end);
        }
        System.arraycopy(of.rawDigest(), 0, named, TAG.length, Sha256.BYTES);
        System.arraycopy(key, 0, named, KEY_AT, key.length);
        sha.reset(); // should the last name have ended half way
        sha.update(named, 0, end);
        Sha256.finish(sha, digest, 0);
        namespace = of;
        name = BlockKey.ofDigest(digest);
        return name;
    }

    @SuppressWarnings("ReferenceEquality") // another one of the same content only costs the digest
    private boolean isSameAsLast(Namespace of, byte[] key) {
        return namespace == of && Arrays.equals(named, KEY_AT, end, key, 0, key.length);
    }
}

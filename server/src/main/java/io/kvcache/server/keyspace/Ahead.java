package io.kvcache.server.keyspace;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import org.jspecify.annotations.Nullable;

/// Which chunk was asked for after which the last time, so that what a reader takes next is brought
/// from disk while he takes what is before it.
///
/// A look-up that goes from chunk to chunk comes before the reads, so the last time is mostly the
/// same sequence, also where several part. A wrong guess costs a read of the disk, and the store
/// sees how many come true.
///
/// **Bound.** The [#MOST] chunks that were seen last, about 200 bytes each, 400 if digests are as
/// long as they may be.
///
/// **Threads.** Any.
final class Ahead {

    /// Chunks that are asked for at a time: a few hundred MiB a second of one reader at a
    /// millisecond each.
    static final int CHUNKS = 8;

    private static final int MOST = 1 << 16;

    private final Cache<String, String> next =
            Caffeine.newBuilder().maximumSize(MOST).executor(Runnable::run).build();
    private final Bringer bringer;

    /// Has the store bring a value from disk, if it likes.
    interface Bringer {

        /// Says that somebody is likely to ask for it soon.
        void expect(byte[] key);
    }

    Ahead(Bringer bringer) {
        this.bringer = bringer;
    }

    /// A client has asked for a chunk after another.
    void goesOn(String digest, String after) {
        if (!digest.equals(next.getIfPresent(after))) {
            next.put(after, digest);
        }
    }

    /// A chunk is being read.
    void read(ChunkKey chunk) {
        String digest = next.getIfPresent(chunk.digest());
        for (int i = 0; i < CHUNKS && digest != null; i++) {
            byte[] key = chunk.with(digest);
            bringer.expect(key);
            byte @Nullable [] half = Halves.other(key);
            if (half != null) {
                bringer.expect(half);
            }
            digest = next.getIfPresent(digest);
        }
    }
}

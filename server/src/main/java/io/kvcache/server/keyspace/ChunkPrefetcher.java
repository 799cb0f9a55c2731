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
/// **Bound.** The [#MAX_ENTRIES] chunks that were seen last, about 200 bytes each, 400 if digests are as
/// long as they may be.
///
/// **Threads.** Any.
final class ChunkPrefetcher {

    /// Chunks that are asked for at a time: a few hundred MiB a second of one reader at a
    /// millisecond each.
    static final int PREFETCH_CHUNKS = 8;

    private static final int MAX_ENTRIES = 1 << 16;

    private final Cache<String, String> successors = Caffeine.newBuilder()
            .maximumSize(MAX_ENTRIES)
            .executor(Runnable::run)
            .build();
    private final PrefetchSink prefetchSink;

    /// Has the store bring a value from disk, if it likes.
    interface PrefetchSink {

        /// Announces that a request for it is likely soon.
        void prefetch(byte[] key);
    }

    ChunkPrefetcher(PrefetchSink prefetchSink) {
        this.prefetchSink = prefetchSink;
    }

    /// A client has asked for a chunk after another.
    void recordSuccessor(String digest, String after) {
        if (!digest.equals(successors.getIfPresent(after))) {
            successors.put(after, digest);
        }
    }

    /// A chunk is being read.
    void onRead(ChunkKey chunk) {
        String digest = successors.getIfPresent(chunk.digest());
        for (int i = 0; i < PREFETCH_CHUNKS && digest != null; i++) {
            byte[] key = chunk.withDigest(digest);
            prefetchSink.prefetch(key);
            byte @Nullable [] half = ObjectKey.otherHalf(key);
            if (half != null) {
                prefetchSink.prefetch(half);
            }
            digest = successors.getIfPresent(digest);
        }
    }
}

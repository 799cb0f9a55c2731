package io.kvcache.server.keyspace;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.server.keyspace.KeyspaceOptions.RecomputeEstimator;
import org.jspecify.annotations.Nullable;

/// The order in which one connection asks for keys, from which the chunks of a sequence are told.
///
/// LMCache looks a sequence up chunk by chunk until one is not there, reads those that are, and
/// writes the rest; each chunk under a key of its own. So a key that follows another of the same
/// stem comes after it in a sequence, unless there is a sign that a sequence begins: after another
/// verb or a look-up that found nothing, a look-up begins anew. Writes are believed only in a run
/// whose beginning is known, and no longer than the longest context.
///
/// Other keys than LMCache's are not looked at.
///
/// **Threads.** One at a time, as a connection is served.
public final class ChunkSequenceTracker {

    /// Writes that may follow one of which something is known: a million tokens in chunks of 256.
    private static final int MAX_UNKNOWN_WRITES = 4096;

    private final Keyspace keyspace;
    private final ChunkOrder chunkOrder;
    private final PredecessorSink predecessorSink;
    private final @Nullable ChunkPrefetcher chunkPrefetcher;
    private final @Nullable RecomputeAdvisor recomputeAdvisor;
    private @Nullable ChunkKey last;
    private Operation operation = Operation.WRITE;
    private boolean lastFound;

    /// Whether the last one is here, and the client was told that it is not.
    private boolean lastLeftToCompute;

    private int unknownWrites = MAX_UNKNOWN_WRITES;

    private enum Operation {
        LOOKUP,
        READ,
        WRITE
    }

    /// Tells the store which key comes before one that is here.
    interface PredecessorSink {

        /// Says it.
        ///
        /// @param after null for none
        void setPredecessor(byte[] key, byte @Nullable [] after);
    }

    /// @param chunkPrefetcher null where nothing is brought ahead of its readers
    /// @param terms null where clients are told of all that is here
    ChunkSequenceTracker(
            Keyspace keyspace,
            ChunkOrder chunkOrder,
            PredecessorSink predecessorSink,
            @Nullable ChunkPrefetcher chunkPrefetcher,
            @Nullable RecomputeEstimator terms) {
        this.keyspace = keyspace;
        this.chunkOrder = chunkOrder;
        this.predecessorSink = predecessorSink;
        this.chunkPrefetcher = chunkPrefetcher;
        recomputeAdvisor = terms == null ? null : new RecomputeAdvisor(terms);
    }

    /// Whose keys they are.
    public Keyspace keyspace() {
        return keyspace;
    }

    /// Looks a key up.
    ///
    /// @return whether to say that it is here: not of what is computed sooner than read
    public boolean exists(byte[] key) {
        boolean announced = onLookup(key, keyspace.existsWithoutHit(key));
        if (announced) {
            keyspace.countHit();
        }
        return announced;
    }

    /// A key was looked up.
    ///
    /// @param present whether it is here
    /// @return whether to say so: not of what is computed sooner than read
    boolean onLookup(byte[] key, boolean present) {
        ChunkKey chunk = ChunkKey.of(key);
        if (chunk == null || (isOtherHalf(chunk, Operation.LOOKUP, present) && !lastLeftToCompute)) {
            return present;
        }
        boolean goesOn = continuesSequence(chunk, Operation.LOOKUP);
        boolean announced = present && shouldLoad(key, goesOn);
        String before = goesOn ? lastDigest() : ChunkOrder.NONE;
        if (chunkPrefetcher != null && announced && !before.equals(ChunkOrder.NONE)) {
            chunkPrefetcher.recordSuccessor(chunk.digest(), before);
        }
        if (chunkOrder.onLookup(chunk.digest(), before) && present) {
            reportPredecessor(chunk);
        }
        advance(chunk, Operation.LOOKUP, announced);
        lastLeftToCompute = present && !announced;
        return announced;
    }

    private boolean shouldLoad(byte[] key, boolean goesOn) {
        if (recomputeAdvisor == null || recomputeAdvisor.shouldLoad(goesOn, onDiskBytes(key))) {
            return true;
        }
        keyspace.countRecomputed(key);
        return false;
    }

    /// With the other half, as a client that asks for one reads both.
    private long onDiskBytes(byte[] key) {
        byte[] half = ObjectKey.otherHalf(key);
        return keyspace.onDiskBytes(key) + (half == null ? 0 : keyspace.onDiskBytes(half));
    }

    /// A key was read.
    ///
    /// @param present whether it is here
    public void onRead(byte[] key, boolean present) {
        ChunkKey chunk = ChunkKey.of(key);
        if (chunk != null) {
            onRead(chunk, present);
        }
    }

    /// As [#onRead(byte[], boolean)], of a key that is known to be of a chunk.
    public void onRead(ChunkKey chunk, boolean present) {
        if (isOtherHalf(chunk, Operation.READ, present)) {
            return;
        }
        boolean next = continuesSequence(chunk, Operation.READ);
        if (next && chunkOrder.onTransfer(chunk.digest(), lastDigest()) && present) {
            reportPredecessor(chunk);
        }
        if (chunkPrefetcher != null && present) {
            if (next) {
                chunkPrefetcher.recordSuccessor(chunk.digest(), lastDigest());
            }
            chunkPrefetcher.onRead(chunk);
        }
        if (present) {
            keyspace.countChunkRead();
        }
        advance(chunk, Operation.READ, present);
    }

    /// A key is about to be written.
    ///
    /// @return the key that is read before it, as far as is known
    public byte @Nullable [] onWrite(byte[] key) {
        ChunkKey chunk = ChunkKey.of(key);
        if (chunk == null) {
            return null;
        }
        String before = chunkOrder.predecessorOf(chunk.digest());
        if (before != null) {
            unknownWrites = 0;
        } else if (isNextWrite(chunk)) {
            unknownWrites++;
            before = lastDigest();
            chunkOrder.onTransfer(chunk.digest(), before);
        } else {
            unknownWrites = MAX_UNKNOWN_WRITES;
        }
        advance(chunk, Operation.WRITE, true);
        return before == null || before.equals(ChunkOrder.NONE) ? null : chunk.withDigest(before);
    }

    private boolean isNextWrite(ChunkKey chunk) {
        ChunkKey earlier = last;
        return earlier != null
                && earlier.isSameModel(chunk)
                && lastFound
                && (operation != Operation.WRITE || unknownWrites < MAX_UNKNOWN_WRITES);
    }

    private boolean continuesSequence(ChunkKey chunk, Operation next) {
        ChunkKey earlier = last;
        return earlier != null && operation == next && lastFound && earlier.isSameModel(chunk);
    }

    /// The second half of what the last request was about tells nothing new.
    private boolean isOtherHalf(ChunkKey chunk, Operation next, boolean present) {
        ChunkKey earlier = last;
        boolean same = earlier != null
                && operation == next
                && earlier.digest().equals(chunk.digest())
                && earlier.isSameModel(chunk);
        lastFound = same ? lastFound && present : lastFound;
        return same;
    }

    private String lastDigest() {
        ChunkKey earlier = last;
        return earlier == null ? ChunkOrder.NONE : earlier.digest();
    }

    private void advance(ChunkKey chunk, Operation current, boolean present) {
        last = chunk;
        operation = current;
        lastFound = present;
    }

    private void reportPredecessor(ChunkKey chunk) {
        String before = chunkOrder.predecessorOf(chunk.digest());
        sendPredecessor(chunk, before);
        byte[] half = ObjectKey.otherHalf(chunk.key());
        ChunkKey other = half == null ? null : ChunkKey.of(half);
        if (other != null) {
            sendPredecessor(other, before);
        }
    }

    private void sendPredecessor(ChunkKey chunk, @Nullable String before) {
        predecessorSink.setPredecessor(
                chunk.key(), before == null || before.equals(ChunkOrder.NONE) ? null : chunk.withDigest(before));
    }

    /// Whether the chunks on disk that a look-up finds are worth reading, all together: if not, the
    /// client is told that the next one is not there, and computes from it on.
    ///
    /// Where in its sequence a look-up begins is not known when the client has the first chunks itself;
    /// then computing counts for less than it takes. As nothing is learned of a disk that is not read,
    /// one in [#TRIES] chunks is told of all the same.
    ///
    /// **Threads.** One at a time, as a connection is served.
    static final class RecomputeAdvisor {

        private static final int TRIES = 64;

        private final RecomputeEstimator terms;
        private int position;
        private int onDiskChunks;
        private long onDiskBytes;
        private int refusals;

        RecomputeAdvisor(RecomputeEstimator terms) {
            this.terms = terms;
        }

        /// A look-up has come to a chunk that is here.
        ///
        /// @param goesOn whether it came to the one before too; else it begins
        /// @param bytes that would have to be read; 0 when it is in memory
        /// @return whether to tell of it
        boolean shouldLoad(boolean goesOn, long bytes) {
            if (!goesOn) {
                position = 0;
                onDiskChunks = 0;
                onDiskBytes = 0;
            }
            position++;
            if (bytes == 0) {
                return true;
            }
            onDiskChunks++;
            onDiskBytes += bytes;
            return !terms.isRecomputeFaster(onDiskBytes, position - onDiskChunks, position) || ++refusals % TRIES == 0;
        }
    }

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
    static final class ChunkPrefetcher {

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
}

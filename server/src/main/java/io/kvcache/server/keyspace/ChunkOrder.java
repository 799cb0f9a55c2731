package io.kvcache.server.keyspace;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import org.jspecify.annotations.Nullable;

/// Which chunk of tokens comes before which, as far as clients have shown it by the order in which they
/// ask.
///
/// A chunk's digest covers all before it, so it has one predecessor for ever, or none; what is
/// learned of one worker's keys holds for those of all. A look-up of a sequence begins with its
/// first chunk, or with the first that the client does not have itself, and ends with the first
/// that is not here. Reads and writes tell less, as those of several sequences may follow one
/// another: what they show counts only until a look-up has shown something.
///
/// When two look-ups of different sequences follow each other without a sign of the border, the
/// second one's first chunk seems to come after the other's last. That is contradicted when it is
/// seen again, and what is contradicted as often as it was seen is taken for a first chunk: a
/// predecessor too few costs little, one too many keeps a whole sequence for the sake of another.
///
/// **Bound.** The [#MAX_ENTRIES] chunks that were seen last, about 250 bytes each, 450 if digests
/// are as long as they may be.
///
/// **Threads.** Any.
final class ChunkOrder {

    /// Nothing comes before it.
    static final String NONE = "";

    /// Longest sequence that is followed: a million tokens in chunks of 256.
    static final int MAX_DEPTH = 4096;

    private static final int MAX_ENTRIES = 1 << 16;
    private static final int MAX_TRUST = 3;

    private final Cache<String, Observation> known = Caffeine.newBuilder()
            .maximumSize(MAX_ENTRIES)
            .executor(Runnable::run)
            .build();

    /// The observations of one chunk.
    ///
    /// @param before digest, or [#NONE]
    /// @param byLookup whether in a look-up
    /// @param trust how often more than contradicted
    private record Observation(String before, boolean byLookup, int trust) {

        /// Returns the observations after one more.
        Observation updated(String nextBefore, boolean nextByLookup) {
            if (nextByLookup != byLookup) {
                boolean replaces = nextByLookup && !nextBefore.equals(NONE);
                return replaces ? new Observation(nextBefore, true, 1) : this;
            }
            if (nextBefore.equals(before)) {
                return trust == MAX_TRUST ? this : new Observation(before, byLookup, trust + 1);
            }
            if (nextBefore.equals(NONE)) {
                return this; // it began in the middle
            }
            if (trust > 1) {
                return new Observation(before, byLookup, trust - 1);
            }
            return before.equals(NONE)
                    ? new Observation(nextBefore, byLookup, 1)
                    : new Observation(NONE, byLookup, MAX_TRUST);
        }
    }

    /// The digest of the chunk before one, [#NONE] for a first one, or null when nothing is known.
    @Nullable
    String predecessorOf(String digest) {
        Observation observation = known.getIfPresent(digest);
        return observation == null ? null : observation.before;
    }

    /// Returns how many chunks come before one in its sequence; -1 where its beginning is not known.
    int depthOf(String digest) {
        String before = predecessorOf(digest);
        int depth = 0;
        while (before != null && !before.equals(NONE) && depth < MAX_DEPTH) {
            before = predecessorOf(before);
            depth++;
        }
        return NONE.equals(before) ? depth : -1;
    }

    /// A look-up has asked for a chunk after another.
    ///
    /// @param before [#NONE] when the look-up begins here
    /// @return whether that changes what is known
    boolean onLookup(String digest, String before) {
        return observe(digest, before, true);
    }

    /// A chunk was read or written after another.
    ///
    /// @return whether that changes what is known
    boolean onTransfer(String digest, String before) {
        return observe(digest, before, false);
    }

    private boolean observe(String digest, String before, boolean byLookup) {
        if (digest.equals(before)) {
            return false;
        }
        Observation observation = known.getIfPresent(digest);
        Observation next =
                observation == null ? new Observation(before, byLookup, 1) : observation.updated(before, byLookup);
        if (!next.equals(observation)) {
            known.put(digest, next);
        }
        return observation == null ? !before.equals(NONE) : !observation.before.equals(next.before);
    }
}

package io.kvcache.server.keyspace;

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
public final class KeyRun {

    /// Writes that may follow one of which something is known: a million tokens in chunks of 256.
    private static final int LONGEST = 4096;

    private final Keyspace keyspace;
    private final Predecessors predecessors;
    private final Follower follower;
    private final @Nullable Ahead ahead;
    private final @Nullable LookupAdvice advice;
    private @Nullable ChunkKey last;
    private Verb verb = Verb.WRITE;
    private boolean found;

    /// Whether the last one is here, and the client was told that it is not.
    private boolean left;

    private int unknown = LONGEST;

    private enum Verb {
        LOOKUP,
        READ,
        WRITE
    }

    /// Tells the store which key comes before one that is here.
    interface Follower {

        /// Says it.
        ///
        /// @param after null for none
        void follow(byte[] key, byte @Nullable [] after);
    }

    /// @param ahead null where nothing is brought ahead of its readers
    /// @param terms null where clients are told of all that is here
    KeyRun(
            Keyspace keyspace,
            Predecessors predecessors,
            Follower follower,
            @Nullable Ahead ahead,
            @Nullable PrefillTerms terms) {
        this.keyspace = keyspace;
        this.predecessors = predecessors;
        this.follower = follower;
        this.ahead = ahead;
        advice = terms == null ? null : new LookupAdvice(terms);
    }

    /// Whose keys they are.
    public Keyspace keyspace() {
        return keyspace;
    }

    /// Looks a key up.
    ///
    /// @return whether to say that it is here: not of what is computed sooner than read
    public boolean exists(byte[] key) {
        boolean told = lookedUp(key, keyspace.find(key));
        if (told) {
            keyspace.countHit();
        }
        return told;
    }

    /// A key was looked up.
    ///
    /// @param here whether it is here
    /// @return whether to say so: not of what is computed sooner than read
    boolean lookedUp(byte[] key, boolean here) {
        ChunkKey chunk = ChunkKey.of(key);
        if (chunk == null || (isOtherHalf(chunk, Verb.LOOKUP, here) && !left)) {
            return here;
        }
        boolean goesOn = goesOn(chunk, Verb.LOOKUP);
        boolean told = here && isWorthReading(key, goesOn);
        String before = goesOn ? digestOfLast() : Predecessors.NONE;
        if (ahead != null && told && !before.equals(Predecessors.NONE)) {
            ahead.goesOn(chunk.digest(), before);
        }
        if (predecessors.lookedUp(chunk.digest(), before) && here) {
            follow(chunk);
        }
        now(chunk, Verb.LOOKUP, told);
        left = here && !told;
        return told;
    }

    private boolean isWorthReading(byte[] key, boolean goesOn) {
        if (advice == null || advice.isWorthReading(goesOn, awayBytes(key))) {
            return true;
        }
        keyspace.leftToCompute();
        return false;
    }

    /// With the other half, as who asks for one reads both.
    private long awayBytes(byte[] key) {
        byte[] half = Halves.other(key);
        return keyspace.awayBytes(key) + (half == null ? 0 : keyspace.awayBytes(half));
    }

    /// A key was read.
    ///
    /// @param here whether it is here
    public void read(byte[] key, boolean here) {
        ChunkKey chunk = ChunkKey.of(key);
        if (chunk == null || isOtherHalf(chunk, Verb.READ, here)) {
            return;
        }
        boolean next = goesOn(chunk, Verb.READ);
        if (next && predecessors.moved(chunk.digest(), digestOfLast()) && here) {
            follow(chunk);
        }
        if (ahead != null && here) {
            if (next) {
                ahead.goesOn(chunk.digest(), digestOfLast());
            }
            ahead.read(chunk);
        }
        now(chunk, Verb.READ, here);
    }

    /// A key is about to be written.
    ///
    /// @return the key that is read before it, as far as is known
    public byte @Nullable [] writes(byte[] key) {
        ChunkKey chunk = ChunkKey.of(key);
        if (chunk == null) {
            return null;
        }
        String before = predecessors.of(chunk.digest());
        if (before != null) {
            unknown = 0;
        } else if (follows(chunk)) {
            unknown++;
            before = digestOfLast();
            predecessors.moved(chunk.digest(), before);
        } else {
            unknown = LONGEST;
        }
        now(chunk, Verb.WRITE, true);
        return before == null || before.equals(Predecessors.NONE) ? null : chunk.with(before);
    }

    private boolean follows(ChunkKey chunk) {
        ChunkKey earlier = last;
        return earlier != null && earlier.sameStem(chunk) && found && (verb != Verb.WRITE || unknown < LONGEST);
    }

    private boolean goesOn(ChunkKey chunk, Verb next) {
        ChunkKey earlier = last;
        return earlier != null && verb == next && found && earlier.sameStem(chunk);
    }

    /// The second half of what the last request was about tells nothing new.
    private boolean isOtherHalf(ChunkKey chunk, Verb next, boolean here) {
        ChunkKey earlier = last;
        boolean same =
                earlier != null && verb == next && earlier.digest().equals(chunk.digest()) && earlier.sameStem(chunk);
        found = same ? found && here : found;
        return same;
    }

    private String digestOfLast() {
        ChunkKey earlier = last;
        return earlier == null ? Predecessors.NONE : earlier.digest();
    }

    private void now(ChunkKey chunk, Verb current, boolean here) {
        last = chunk;
        verb = current;
        found = here;
    }

    private void follow(ChunkKey chunk) {
        String before = predecessors.of(chunk.digest());
        tell(chunk, before);
        byte[] half = Halves.other(chunk.key());
        ChunkKey other = half == null ? null : ChunkKey.of(half);
        if (other != null) {
            tell(other, before);
        }
    }

    private void tell(ChunkKey chunk, @Nullable String before) {
        follower.follow(chunk.key(), before == null || before.equals(Predecessors.NONE) ? null : chunk.with(before));
    }
}

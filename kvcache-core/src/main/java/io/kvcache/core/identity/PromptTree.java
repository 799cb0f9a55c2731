package io.kvcache.core.identity;

import io.kvcache.core.hash.Sha256;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/// Prompts that were hashed before, with their chains: a prompt that continues one of them hashes only what
/// is new.
///
/// [#chain] returns what [BlockChain#of] returns. It finds known tokens by a fingerprint and then compares
/// all of them, so a collision costs time and never gives a wrong chain.
///
/// **Bound.** The map that holds the segments is the caller's, and evicts by [#weigh]: a segment has a copy
/// of its tokens and its share of the digests. [#maxBytes()] is the usual bound. What hangs below an evicted
/// segment is never found again, and ages out.
///
/// **Threads.** Any number, if the map is for any number.
public final class PromptTree {

    // A radix tree over tokens, in one map. A segment is a run of up to 8,192 tokens in whole blocks, and
    // begins at the block where a prompt differed from what was known. Its key is (parent, position,
    // fingerprint): the segment before it, the position of the first token that is not the parent's, and a
    // fingerprint of the tokens there. The parent of the first segment is the namespace.
    //
    // A look-up compares a segment with the prompt and goes on at the first token that differs, or behind the
    // end. All before that token is proved equal. So prompts that differ in a date near their start, or that
    // were forked from one conversation, have segments of their own from there on and never replace each
    // other's.
    //
    // A segment's identity stands for its tokens: they are only appended to, by a compare-and-set on the
    // map's entry. So a key with this parent names one prefix, however segments are evicted and made anew.
    // Segments that have no room left to grow, and only those, have children behind their end.

    /// Tokens of a segment at most, rounded to whole blocks. They are 32 KiB, which are compared in half a
    /// microsecond, beside a look-up of 0.07, and are copied whenever the end of a conversation grows.
    private static final int SEGMENT_TOKENS = 8192;

    /// Tokens under a fingerprint, fewer at the end of a block. More would not be better: they are compared
    /// anyway.
    private static final int FINGERPRINT_TOKENS = 8;

    /// A step of a look-up takes as long as hashing this many tokens, so a prompt with many forks takes at most
    /// about twice as long as hashing it.
    private static final int STEP_TOKENS = 64;

    private static final int MIN_STEPS = 16;

    /// A segment, its key, its chain, the headers of their arrays, and an entry of a map that orders entries
    /// by use.
    private static final int OVERHEAD_BYTES = 384;

    /// About 80 conversations of 128k tokens in blocks of 16, 120 in blocks of 256.
    private static final long MAX_BYTES = 64L << 20;

    private static final int HEAP_FRACTION = 32;

    private static final int[] NO_TOKENS = {};

    private final ConcurrentMap<Key, Segment> segments;
    private final LongAdder found = new LongAdder();
    private final LongAdder hashed = new LongAdder();

    /// @param segments empty, and this tree's own; it may forget any entry at any time
    public PromptTree(ConcurrentMap<Key, Segment> segments) {
        this.segments = segments;
    }

    /// The usual bound of a tree, in bytes: a thirty-second of the heap, 64 MiB at most.
    public static long maxBytes() {
        return Math.min(MAX_BYTES, Runtime.getRuntime().maxMemory() / HEAP_FRACTION);
    }

    /// Heap bytes of an entry of the map.
    public static int weigh(Key key, Segment segment) {
        return segment.bytes();
    }

    /// The chain of a sequence, equal to [BlockChain#of]. Compares the tokens of whole blocks that are known,
    /// hashes the others and remembers them.
    ///
    /// @param tokens any int32 is a token; not kept
    /// @throws IllegalStateException when the namespace has no parts
    public BlockChain chain(Namespace namespace, int[] tokens) {
        int blockTokens = namespace.blockTokens();
        int whole = tokens.length - tokens.length % blockTokens;
        if (whole == 0) {
            return BlockChain.of(namespace, tokens);
        }
        Place place = find(namespace, tokens, whole);
        int known = place.same / blockTokens;
        found.add((long) known * blockTokens);
        hashed.add(whole - (long) known * blockTokens);
        Segment deepest = place.deepest;
        BlockChain prefix = deepest == null ? BlockChain.of(namespace, NO_TOKENS) : deepest.chain.prefix(known);
        // Hashed and kept from one copy, so that a caller that writes to its array deceives itself only.
        int[] rest = Arrays.copyOfRange(tokens, known * blockTokens, tokens.length);
        if (place.same == whole) {
            return rest.length == 0 ? prefix : prefix.extend(rest);
        }
        Growth growth = new Growth(prefix, prefix.extend(rest), rest);
        if (place.isVacant) {
            add(place.key, growth, 0);
        } else if (deepest != null && deepest.canGrowAt(place.same)) {
            grow(place.key, deepest, growth);
        }
        return growth.chain;
    }

    /// Where a look-up ended.
    ///
    /// @param deepest segment that was found
    /// @param same leading tokens of the prompt that are proved to be those of its chain
    /// @param key of that segment, or of one that does not exist
    private record Place(@Nullable Segment deepest, int same, Key key, boolean isVacant) {}

    private Place find(Namespace namespace, int[] tokens, int whole) {
        int blockTokens = namespace.blockTokens();
        Key key = Key.of(namespace, tokens, 0, blockTokens);
        Segment deepest = null;
        int same = 0;
        for (int steps = MIN_STEPS + whole / STEP_TOKENS; steps > 0; steps--) {
            Segment next = segments.get(key);
            if (next == null) {
                return new Place(deepest, same, key, true);
            }
            deepest = next;
            same = next.firstDifference(tokens, whole);
            if (same == whole || next.canGrowAt(same)) {
                break;
            }
            key = Key.of(next.id, tokens, same, blockTokens);
        }
        return new Place(deepest, same, key, false);
    }

    /// Tokens of whole blocks since the start.
    public TokenCounts counts() {
        return new TokenCounts(found.sum(), hashed.sum());
    }

    /// What [#chain] has done.
    ///
    /// @param found tokens whose hashes were known
    /// @param hashed tokens that were hashed
    public record TokenCounts(long found, long hashed) {}

    /// A chain that has grown.
    ///
    /// @param rest what follows the prefix, with a partial block
    @SuppressWarnings("ArrayRecordComponent") // not kept
    private record Growth(BlockChain prefix, BlockChain chain, int[] rest) {

        int wholeTokens() {
            return (chain.length() - prefix.length()) * chain.blockTokens();
        }

        int start() {
            return prefix.length() * chain.blockTokens();
        }

        /// Heap of the new digests beyond 32 bytes each: copies of earlier ones, and room for more.
        int spareBytes() {
            int newBytes = (chain.length() - prefix.length()) * Sha256.BYTES;
            return Math.max(0, chain.digestBytesBeyond(prefix) - newBytes);
        }

        /// The chain up to the given token of the rest, to be kept.
        BlockChain upTo(int token) {
            return chain.compactPrefix(prefix.length() + token / chain.blockTokens());
        }
    }

    /// Appends to a segment that has room, and adds segments below it for what does not fit.
    private void grow(Key key, Segment segment, Growth growth) {
        int taken = Math.min(growth.wholeTokens(), segmentTokens(growth.chain.blockTokens()) - segment.tokens.length);
        int[] grown = Arrays.copyOf(segment.tokens, segment.tokens.length + taken);
        System.arraycopy(growth.rest, 0, grown, segment.tokens.length, taken);
        Segment longer = new Segment(
                segment.id,
                segment.start,
                grown,
                growth.upTo(taken),
                Math.max(segment.spareBytes, growth.spareBytes()));
        // Before what hangs below it: if another prompt has grown the segment, its end is not this one's.
        if (segments.replace(key, segment, longer) && taken < growth.wholeTokens()) {
            add(Key.of(segment.id, growth, taken), growth, taken);
        }
    }

    /// Adds segments for what follows token `from` of the rest. The deepest comes first: where the map evicts
    /// by age, it evicts that before the segment through which it is found.
    private void add(Key first, Growth growth, int from) {
        record Entry(Key key, Segment segment) {}
        List<Entry> entries = new ArrayList<>();
        int segmentTokens = segmentTokens(growth.chain.blockTokens());
        Key key = first;
        int spareBytes = from == 0 ? growth.spareBytes() : 0;
        for (int at = from; at < growth.wholeTokens(); at += segmentTokens) {
            int end = Math.min(growth.wholeTokens(), at + segmentTokens);
            Segment segment = new Segment(
                    new Object(),
                    growth.start() + at,
                    Arrays.copyOfRange(growth.rest, at, end),
                    growth.upTo(end),
                    spareBytes);
            entries.add(new Entry(key, segment));
            spareBytes = 0;
            if (end < growth.wholeTokens()) {
                key = Key.of(segment.id, growth, end);
            }
        }
        for (Entry entry : entries.reversed()) {
            segments.putIfAbsent(entry.key, entry.segment);
        }
    }

    private static int segmentTokens(int blockTokens) {
        return Math.max(1, SEGMENT_TOKENS / blockTokens) * blockTokens;
    }

    /// Where a segment hangs.
    public static final class Key {

        private final Object parent;
        private final int position;
        private final int fingerprint;

        private Key(Object parent, int position, int fingerprint) {
            this.parent = parent;
            this.position = position;
            this.fingerprint = fingerprint;
        }

        /// @param parent a segment's identity, or a namespace
        /// @param position in the prompt, of a token of a whole block
        static Key of(Object parent, int[] tokens, int position, int blockTokens) {
            int blockEnd = position - position % blockTokens + blockTokens;
            return new Key(parent, position, fingerprint(tokens, position, blockEnd));
        }

        /// @param at token of the rest where a block begins
        private static Key of(Object parent, Growth growth, int at) {
            int blockEnd = at + growth.chain.blockTokens();
            return new Key(parent, growth.start() + at, fingerprint(growth.rest, at, blockEnd));
        }

        private static int fingerprint(int[] tokens, int from, int blockEnd) {
            int hash = 0;
            for (int i = from; i < Math.min(from + FINGERPRINT_TOKENS, blockEnd); i++) {
                hash = 31 * hash + tokens[i];
            }
            return hash;
        }

        @Override
        public boolean equals(@Nullable Object other) {
            return other instanceof Key that
                    && position == that.position
                    && fingerprint == that.fingerprint
                    && parent.equals(that.parent);
        }

        @Override
        public int hashCode() {
            return 31 * (31 * parent.hashCode() + position) + fingerprint;
        }
    }

    /// A run of tokens in whole blocks. Equal to itself alone.
    public static final class Segment {

        private final Object id;
        private final int start;
        private final int[] tokens;
        private final BlockChain chain;
        private final int spareBytes;

        /// @param id the same for a segment and what it grows to
        /// @param start position of its first token
        /// @param chain of all tokens up to its end
        /// @param spareBytes heap of digests beside its blocks' own
        private Segment(Object id, int start, int[] tokens, BlockChain chain, int spareBytes) {
            this.id = id;
            this.start = start;
            this.tokens = tokens;
            this.chain = chain;
            this.spareBytes = spareBytes;
        }

        /// Position of the first token that differs, or where this segment or the prompt's whole blocks end.
        private int firstDifference(int[] prompt, int whole) {
            int count = Math.min(tokens.length, whole - start);
            int same = Arrays.mismatch(tokens, 0, count, prompt, start, start + count);
            return start + (same < 0 ? count : same);
        }

        /// Whether this is its end, and another block fits.
        private boolean canGrowAt(int position) {
            int blockTokens = chain.blockTokens();
            return position == start + tokens.length && tokens.length + blockTokens <= segmentTokens(blockTokens);
        }

        /// Also the references to the pieces of its chain's digests, of which there is one for 256 blocks.
        private int bytes() {
            int blocks = tokens.length / chain.blockTokens();
            return OVERHEAD_BYTES
                    + tokens.length * Integer.BYTES
                    + blocks * Sha256.BYTES
                    + chain.length() / 32
                    + spareBytes;
        }
    }
}

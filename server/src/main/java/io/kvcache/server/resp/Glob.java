package io.kvcache.server.resp;

/// Patterns of MATCH, KEYS and CONFIG GET: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before what is meant
/// literally.
///
/// **Linear.** A pattern is compiled once, into the set of its elements that each byte matches. A text is then
/// read once, with a set of all the places in the pattern that it may have come to: 64 of them cost one step a
/// byte, however many stars there are.
final class Glob {

    /// More than names have; a set of places has 17 words at most.
    static final int MAX_BYTES = 1024;

    private static final int BYTE_VALUES = 256;
    private static final int ANY = -1;

    private final byte[] pattern;

    /// Words of a set of places. Place i is before element i; the last place is behind all of them.
    private final int words;

    /// For each byte value, the places whose element it matches.
    private final long[] matching;

    /// The places that a star lets stay.
    private final long[] staying;

    private int places;

    /// @throws CommandException when the pattern is too long
    Glob(byte[] pattern) throws CommandException {
        if (pattern.length > MAX_BYTES) {
            throw new CommandException("ERR the pattern has " + pattern.length + " bytes; it takes up to " + MAX_BYTES);
        }
        this.pattern = pattern;
        words = pattern.length / Long.SIZE + 1;
        matching = new long[BYTE_VALUES * words];
        staying = new long[words];
        int p = 0;
        while (p < pattern.length) {
            p = compile(p);
        }
    }

    /// Steps that a byte of a text costs.
    int words() {
        return words;
    }

    /// Compiles the element at `p`; answers where the next one is.
    private int compile(int p) {
        boolean last = p + 1 == pattern.length;
        return switch (pattern[p]) {
            case '*' -> {
                set(staying, 0, places);
                yield p + 1;
            }
            case '?' -> add(ANY, p + 1);
            case '[' -> addSet(p + 1);
            case '\\' -> add(pattern[last ? p : p + 1] & 0xff, last ? p + 1 : p + 2);
            default -> add(pattern[p] & 0xff, p + 1);
        };
    }

    private int add(int value, int next) {
        for (int each = 0; each < BYTE_VALUES; each++) {
            if (value == ANY || value == each) {
                set(matching, each, places);
            }
        }
        places++;
        return next;
    }

    private int addSet(int first) {
        int p = first;
        boolean negated = p < pattern.length && pattern[p] == '^';
        if (negated) {
            p++;
        }
        boolean[] found = new boolean[BYTE_VALUES];
        for (; p < pattern.length && pattern[p] != ']'; p++) {
            if (pattern[p] == '\\' && p + 1 < pattern.length) {
                p++;
            }
            int low = pattern[p] & 0xff;
            int high = low;
            if (p + 2 < pattern.length && pattern[p + 1] == '-' && pattern[p + 2] != ']') {
                high = pattern[p + 2] & 0xff;
                p += 2;
            }
            for (int value = Math.min(low, high); value <= Math.max(low, high); value++) {
                found[value] = true;
            }
        }
        for (int value = 0; value < BYTE_VALUES; value++) {
            if (found[value] != negated) {
                set(matching, value, places);
            }
        }
        places++;
        return Math.min(p + 1, pattern.length);
    }

    private void set(long[] sets, int index, int place) {
        sets[index * words + place / Long.SIZE] |= 1L << place;
    }

    private boolean isIn(long[] set, int place) {
        return ((set[place / Long.SIZE] >>> place) & 1) != 0;
    }

    boolean matches(byte[] text) {
        long[] now = new long[words];
        now[0] = 1;
        boolean rest = isIn(staying, places); // what ends in a star takes all that follows
        for (byte each : text) {
            if (rest && isIn(now, places)) {
                return true;
            }
            if (!step(now, (each & 0xff) * words)) {
                return false;
            }
        }
        return isIn(now, places);
    }

    /// Goes on by a byte whose matches begin at an index; answers whether any place is left.
    private boolean step(long[] now, int index) {
        long carry = 0;
        long any = 0;
        for (int word = 0; word < words; word++) {
            long moved = now[word] & matching[index + word];
            long next = (moved << 1) | carry | (now[word] & staying[word]);
            carry = moved >>> (Long.SIZE - 1);
            now[word] = next;
            any |= next;
        }
        return any != 0;
    }
}

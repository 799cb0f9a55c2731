package io.kvcache.server.resp;

import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// Patterns of MATCH, KEYS and CONFIG GET: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before what is meant
/// literally.
///
/// A text is read from its beginning; where it does not fit, the last star takes one byte more. So a byte of the
/// text costs at most a look at each element, however many stars there are.
final class Glob {

    /// More than names have.
    static final int MAX_BYTES = 1024;

    private static final int BYTE_VALUES = 256;

    /// The bytes that each element takes; null for a star, which takes any number of any.
    private final List<@Nullable BitSet> elements = new ArrayList<>();

    /// @throws CommandException when the pattern is too long
    Glob(byte[] pattern) throws CommandException {
        if (pattern.length > MAX_BYTES) {
            throw new CommandException("ERR the pattern has " + pattern.length + " bytes; it takes up to " + MAX_BYTES);
        }
        for (int p = 0; p < pattern.length; p++) {
            switch (pattern[p]) {
                case '*' -> elements.add(null);
                case '?' -> add(0, BYTE_VALUES - 1);
                case '[' -> p = addSet(pattern, p + 1);
                default -> {
                    p += pattern[p] == '\\' && p + 1 < pattern.length ? 1 : 0;
                    add(pattern[p] & 0xff, pattern[p] & 0xff);
                }
            }
        }
    }

    private void add(int low, int high) {
        BitSet bytes = new BitSet();
        bytes.set(low, high + 1);
        elements.add(bytes);
    }

    /// @return the place of the set's end
    private int addSet(byte[] pattern, int first) {
        boolean negated = first < pattern.length && pattern[first] == '^';
        BitSet bytes = new BitSet();
        int p = negated ? first + 1 : first;
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
            bytes.set(Math.min(low, high), Math.max(low, high) + 1);
        }
        if (negated) {
            bytes.flip(0, BYTE_VALUES);
        }
        elements.add(bytes);
        return p;
    }

    /// Steps that a byte of a text costs at most.
    int size() {
        return elements.size();
    }

    boolean matches(byte[] text) {
        int at = 0;
        int element = 0;
        int star = -1;
        int starEnd = 0;
        while (at < text.length) {
            BitSet bytes = element < elements.size() ? elements.get(element) : null;
            if (bytes != null && bytes.get(text[at] & 0xff)) {
                at++;
                element++;
            } else if (bytes == null && element < elements.size()) {
                star = element++;
                starEnd = at;
            } else if (star >= 0) {
                element = star + 1;
                at = ++starEnd;
            } else {
                return false;
            }
        }
        while (element < elements.size() && elements.get(element) == null) {
            element++;
        }
        return element == elements.size();
    }
}

package io.kvcache.server.resp;

/// Patterns of MATCH, KEYS and CONFIG GET: `*`, `?`, `[a-z]`, `[^a]`, and a backslash before what is meant literally.
///
/// Takes time proportional to pattern times text at worst, as a star only ever moves on.
final class Glob {

    private final byte[] pattern;

    Glob(byte[] pattern) {
        this.pattern = pattern;
    }

    boolean matches(byte[] text) {
        int p = 0;
        int t = 0;
        int star = -1;
        int from = 0;
        while (t < text.length) {
            if (p < pattern.length && pattern[p] == '*') {
                star = p++;
                from = t;
                continue;
            }
            int next = p < pattern.length ? matchOne(p, text[t]) : -1;
            if (next >= 0) {
                p = next;
                t++;
            } else if (star >= 0) {
                p = star + 1;
                t = ++from;
            } else {
                return false;
            }
        }
        while (p < pattern.length && pattern[p] == '*') {
            p++;
        }
        return p == pattern.length;
    }

    /// The place behind the element of the pattern at `p` when it matches `each`, else -1.
    private int matchOne(int p, byte each) {
        return switch (pattern[p]) {
            case '?' -> p + 1;
            case '[' -> matchSet(p + 1, each);
            case '\\' -> p + 1 < pattern.length ? (pattern[p + 1] == each ? p + 2 : -1) : (each == '\\' ? p + 1 : -1);
            default -> pattern[p] == each ? p + 1 : -1;
        };
    }

    private int matchSet(int first, byte each) {
        int p = first;
        boolean negated = p < pattern.length && pattern[p] == '^';
        if (negated) {
            p++;
        }
        boolean found = false;
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
            int value = each & 0xff;
            found |= value >= Math.min(low, high) && value <= Math.max(low, high);
        }
        int end = p < pattern.length ? p + 1 : p;
        return found == negated ? -1 : end;
    }
}

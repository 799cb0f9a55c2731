package io.kvcache.core.identity;

/// The values a named number may take, both ends included, and the one wording of the refusal.
record ValueRange(String field, long min, long max) {

    /// An index into `count` things.
    static int checkIndex(String field, int value, int count) {
        new ValueRange(field, 0, count - 1).check(value);
        return value;
    }

    void check(long value) {
        if (value < min || value > max) {
            throw new IllegalArgumentException(
                    "%s = %s is out of range; allowed: %s".formatted(field, value, allowed()));
        }
    }

    private String allowed() {
        return min == max ? Long.toString(min) : min + " to " + max;
    }
}

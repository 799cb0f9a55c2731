package io.kvcache.bench.suite;

import java.util.Locale;

/// A limit for a result.
public sealed interface Threshold {

    /// Returns whether a result keeps the limit.
    ///
    /// @param ratio value by reference
    boolean isMet(double value, double ratio);

    /// In a few words, for a column of a table.
    String describe();

    /// The value may be this much, in the question's unit.
    record AtMost(double max) implements Threshold {
        @Override
        public boolean isMet(double value, double ratio) {
            return value <= max;
        }

        @Override
        public String describe() {
            return "<= " + (max == Math.rint(max) ? String.valueOf((long) max) : String.valueOf(max));
        }
    }

    /// The value has to be this much, in the question's unit.
    record AtLeast(double min) implements Threshold {
        @Override
        public boolean isMet(double value, double ratio) {
            return value >= min;
        }

        @Override
        public String describe() {
            return ">= " + (min == Math.rint(min) ? String.valueOf((long) min) : String.valueOf(min));
        }
    }

    /// The value has to be at least this many times the reference.
    record RatioAtLeast(double min) implements Threshold {
        @Override
        public boolean isMet(double value, double ratio) {
            return ratio >= min;
        }

        @Override
        public String describe() {
            return String.format(Locale.ROOT, "ratio >= %.2f", min);
        }
    }

    /// The value has to be at most this many times the reference.
    record RatioAtMost(double max) implements Threshold {
        @Override
        public boolean isMet(double value, double ratio) {
            return ratio <= max;
        }

        @Override
        public String describe() {
            return String.format(Locale.ROOT, "ratio <= %.2f", max);
        }
    }

    /// A reference: whatever it is, it is.
    record NoThreshold() implements Threshold {
        @Override
        public boolean isMet(double value, double ratio) {
            return true;
        }

        @Override
        public String describe() {
            return "-";
        }
    }
}

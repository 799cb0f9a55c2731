package io.kvcache.bench.suite;

import java.util.Locale;

/// What an answer has to keep to.
public sealed interface Budget {

    /// Whether an answer keeps to it.
    ///
    /// @param ratio value by reference
    boolean isMet(double value, double ratio);

    /// In a few words, for a column of a table.
    String describe();

    /// The value may be this much, in the question's unit.
    record AtMost(double most) implements Budget {
        @Override
        public boolean isMet(double value, double ratio) {
            return value <= most;
        }

        @Override
        public String describe() {
            return "<= " + (most == Math.rint(most) ? String.valueOf((long) most) : String.valueOf(most));
        }
    }

    /// The value has to be this much, in the question's unit.
    record AtLeast(double least) implements Budget {
        @Override
        public boolean isMet(double value, double ratio) {
            return value >= least;
        }

        @Override
        public String describe() {
            return ">= " + (least == Math.rint(least) ? String.valueOf((long) least) : String.valueOf(least));
        }
    }

    /// The value has to be at least this many times the reference.
    record RatioAtLeast(double least) implements Budget {
        @Override
        public boolean isMet(double value, double ratio) {
            return ratio >= least;
        }

        @Override
        public String describe() {
            return String.format(Locale.ROOT, "ratio >= %.2f", least);
        }
    }

    /// The value has to be at most this many times the reference.
    record RatioAtMost(double most) implements Budget {
        @Override
        public boolean isMet(double value, double ratio) {
            return ratio <= most;
        }

        @Override
        public String describe() {
            return String.format(Locale.ROOT, "ratio <= %.2f", most);
        }
    }

    /// A reference: whatever it is, it is.
    record None() implements Budget {
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

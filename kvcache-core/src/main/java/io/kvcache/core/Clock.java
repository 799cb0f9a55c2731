package io.kvcache.core;

/// Time, as far as the store knows it. Nothing else reads a clock or sleeps.
public interface Clock {

    /// Nanoseconds since some fixed moment.
    long nanos();

    /// Lets time pass: `nanos`, or somewhat more or less.
    void pause(long nanos);
}

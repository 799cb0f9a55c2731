package io.kvcache.core.spi;

/// Time, as far as the store knows it. Nothing else reads a clock or sleeps.
public interface Clock {

    /// Nanoseconds since some fixed moment.
    long nanos();

    /// Lets time pass: `nanos`, or somewhat more or less.
    void sleep(long nanos);

    /// Lets time pass like [#sleep], and no longer than until `monitor`, which the caller holds, is
    /// notified. It may end at any time: ask again what was waited for.
    ///
    /// @throws InterruptedException when the thread was interrupted
    void await(Object monitor, long nanos) throws InterruptedException;
}

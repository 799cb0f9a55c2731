package io.kvcache.transport.remote;

import java.util.function.Predicate;

/// Asks a second time, within the time of the first, where that may help.
final class OnceMore {

    private OnceMore() {}

    /// One try.
    @FunctionalInterface
    interface Attempt<T> {

        /// Asks.
        ///
        /// @param nanos that are left for it
        T within(long nanos) throws CallFailed;
    }

    /// @param helps whether it may help after this failure; asked once
    static <T> T ask(long patienceNanos, Predicate<CallFailed> helps, Attempt<T> attempt) throws CallFailed {
        long start = System.nanoTime();
        try {
            return attempt.within(patienceNanos);
        } catch (CallFailed failed) {
            long left = patienceNanos - (System.nanoTime() - start);
            if (!helps.test(failed) || left <= 0) {
                throw failed;
            }
            return attempt.within(left);
        }
    }
}

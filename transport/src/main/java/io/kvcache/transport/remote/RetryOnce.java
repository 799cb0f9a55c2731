package io.kvcache.transport.remote;

import java.util.function.Predicate;

/// Asks a second time, within the time of the first, where that may help.
final class RetryOnce {

    private RetryOnce() {}

    /// One try.
    @FunctionalInterface
    interface Attempt<T> {

        /// Asks.
        ///
        /// @param nanos that are left for it
        T run(long nanos) throws RpcException;
    }

    /// @param isRetryable whether it may help after this failure; asked once
    static <T> T run(long patienceNanos, Predicate<RpcException> isRetryable, Attempt<T> attempt) throws RpcException {
        long start = System.nanoTime();
        try {
            return attempt.run(patienceNanos);
        } catch (RpcException failed) {
            long left = patienceNanos - (System.nanoTime() - start);
            if (!isRetryable.test(failed) || left <= 0) {
                throw failed;
            }
            return attempt.run(left);
        }
    }
}

package io.kvcache.bench.transport;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/// Moves blocks between this process and a server's, or asks about them.
@FunctionalInterface
interface TransferClient {

    /// Moves what one request moves.
    ///
    /// @param number of the move, counted over all threads
    /// @return whether it was moved, whole
    boolean transfer(long number) throws IOException, InterruptedException;

    /// Runs before each move. Its time does not count.
    default void beforeTransfer() {}

    /// Moves for a while.
    ///
    /// @param threads that each do one move at a time
    /// @throws IllegalStateException when a move fails
    default Transfers measure(int threads, Duration time) throws InterruptedException {
        AtomicLong number = new AtomicLong();
        long start = System.nanoTime();
        long end = start + time.toNanos();
        List<long[]> latencies = new ArrayList<>();
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Future<long[]>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                running.add(executor.submit(() -> nanosUntil(end, number)));
            }
            for (Future<long[]> each : running) {
                latencies.add(each.get());
            }
        } catch (ExecutionException failed) {
            throw new IllegalStateException("a block was not moved", failed.getCause());
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        long[] all = latencies.stream().flatMapToLong(Arrays::stream).sorted().toArray();
        return new Transfers(all.length, seconds, all[all.length / 2] / 1e3, all[(int) (all.length * 99L / 100)] / 1e3);
    }

    private long[] nanosUntil(long end, AtomicLong number) throws IOException, InterruptedException {
        long[] nanos = new long[1024];
        int count = 0;
        long now;
        long after;
        do {
            beforeTransfer();
            now = System.nanoTime();
            if (!transfer(number.incrementAndGet())) {
                throw new IllegalStateException("a transfer failed");
            }
            after = System.nanoTime();
            if (count == nanos.length) {
                nanos = Arrays.copyOf(nanos, 2 * count);
            }
            nanos[count] = after - now;
            count++;
        } while (after < end);
        return Arrays.copyOf(nanos, count);
    }

    /// Moves of a while.
    ///
    /// @param p50Micros half of them took less
    /// @param p99Micros ninety-nine of a hundred took less
    record Transfers(long count, double seconds, double p50Micros, double p99Micros) {

        double gigabytesPerSecond(long bytes) {
            return count * bytes / seconds / 1e9;
        }
    }
}

package io.kvcache.bench.transport;

import io.kvcache.bench.Median;
import io.kvcache.bench.transport.TransferEndpoint.TransferClient;
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

/// Measures how long moves take.
public final class TransferMeter {

    private TransferMeter() {}

    /// Moves blocks for a while, by as many threads as are in flight.
    static TransferStats measure(TransferClient by, TransferSpec transferSpec, Duration time)
            throws InterruptedException {
        AtomicLong number = new AtomicLong();
        long start = System.nanoTime();
        long end = start + time.toNanos();
        List<long[]> latencies = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(transferSpec.inFlight())) {
            List<Future<long[]>> running = new ArrayList<>();
            for (int i = 0; i < transferSpec.inFlight(); i++) {
                running.add(threads.submit(() -> toStats(by, transferSpec, number, end)));
            }
            for (Future<long[]> each : running) {
                latencies.add(each.get());
            }
        } catch (ExecutionException failed) {
            throw new IllegalStateException("a block was not moved", failed.getCause());
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        long[] all = latencies.stream().flatMapToLong(Arrays::stream).sorted().toArray();
        double bytes = (double) all.length * transferSpec.transferBytes();
        return new TransferStats(
                bytes / seconds / 1e9,
                all[all.length / 2] / 1e3,
                all[(int) (all.length * 99L / 100)] / 1e3,
                all.length);
    }

    private static long[] toStats(TransferClient by, TransferSpec transferSpec, AtomicLong number, long end)
            throws IOException, InterruptedException {
        long[] nanos = new long[1024];
        int count = 0;
        long now;
        long after;
        do {
            by.beforeTransfer();
            now = System.nanoTime();
            if (!by.transfer(transferSpec, number.incrementAndGet())) {
                throw new IllegalStateException(transferSpec.operation().label() + " of a block failed");
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

    /// The medians of each figure.
    static TransferStats median(List<TransferStats> all) {
        return new TransferStats(
                Median.of(all, TransferStats::gigabytes),
                Median.of(all, TransferStats::p50Micros),
                Median.of(all, TransferStats::p99Micros),
                (long) Median.of(all, TransferStats::count));
    }

    /// The result of moving blocks for a while.
    ///
    /// @param gigabytes a second, of 10^9 bytes
    /// @param p50Micros half of the blocks took less
    /// @param p99Micros ninety-nine of a hundred took less
    /// @param count how many were made
    public record TransferStats(double gigabytes, double p50Micros, double p99Micros, long count) {}
}

package io.kvcache.bench.server;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/// Puts a load on a port for a while: so many connections, each with a thread, random keys. Each asks once at least,
/// however late its thread begins.
///
/// @param keys asked for, from 0 on
record LoadGenerator(BenchClient.ClientFactory opening, int keys, int connections, int port) {

    private static final int DIGITS = 3;

    LoadResult run(Duration time) throws IOException, InterruptedException {
        long end = System.nanoTime() + time.toNanos();
        Histogram all = new Histogram(DIGITS);
        long start = System.nanoTime();
        try (ExecutorService threads = Executors.newFixedThreadPool(connections)) {
            List<Future<Histogram>> running = new ArrayList<>();
            for (int i = 0; i < connections; i++) {
                long seed = i;
                running.add(threads.submit(() -> client(seed, end)));
            }
            for (Future<Histogram> each : running) {
                all.add(each.get());
            }
        } catch (ExecutionException failed) {
            throw new IOException("a client failed: " + failed.getCause(), failed.getCause());
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        return new LoadResult(
                all.getTotalCount(),
                all.getTotalCount() / seconds,
                all.getValueAtPercentile(50) / 1e3,
                all.getValueAtPercentile(99) / 1e3);
    }

    private Histogram client(long seed, long end) throws IOException {
        Histogram latency = new Histogram(DIGITS);
        Random random = new Random(seed);
        try (BenchClient benchClient = opening.open(port)) {
            long now = System.nanoTime();
            do {
                benchClient.roundTrip(random.nextInt(keys));
                long after = System.nanoTime();
                latency.recordValue(Math.min(after - now, TimeUnit.MINUTES.toNanos(1)));
                now = after;
            } while (now < end);
        }
        return latency;
    }

    /// The result of a load.
    ///
    /// @param count requests
    /// @param perSecond requests of all connections together
    /// @param p50Micros half of the requests took less
    /// @param p99Micros ninety-nine of a hundred took less
    public record LoadResult(long count, double perSecond, double p50Micros, double p99Micros) {

        /// Bytes of values a second, in GB.
        double gigabytesPerSecond(int bytes) {
            return perSecond * bytes / 1e9;
        }
    }

    /// One connection that asks and takes the whole answer before it asks again.
    interface BenchClient extends AutoCloseable {

        /// Asks for a key, or sets it, whichever this exchange is for.
        void roundTrip(int key) throws IOException;

        @Override
        void close() throws IOException;

        /// Connects to a server.
        @FunctionalInterface
        interface ClientFactory {

            BenchClient open(int port) throws IOException;
        }
    }
}

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

/// Runs a load against a port for a while.
final class LoadRun {

    private static final int DIGITS = 3;

    private final Load load;
    private final int port;

    LoadRun(Load load, int port) {
        this.load = load;
        this.port = port;
    }

    /// Stores every key once.
    void fill() throws IOException {
        try (ValueClient client = new ValueClient(port, load.bytes())) {
            for (int key = 0; key < load.keys(); key++) {
                client.set(key);
            }
        }
    }

    LoadResult run(Duration time) throws IOException, InterruptedException {
        long end = System.nanoTime() + time.toNanos();
        Histogram all = new Histogram(DIGITS);
        long start = System.nanoTime();
        try (ExecutorService threads = Executors.newFixedThreadPool(load.connections())) {
            List<Future<Histogram>> running = new ArrayList<>();
            for (int i = 0; i < load.connections(); i++) {
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
                all.getTotalCount() / seconds, all.getValueAtPercentile(50) / 1e3, all.getValueAtPercentile(99) / 1e3);
    }

    private Histogram client(long seed, long end) throws IOException {
        Histogram latency = new Histogram(DIGITS);
        Random random = new Random(seed);
        try (ValueClient client = new ValueClient(port, load.bytes())) {
            long now = System.nanoTime();
            while (now < end) {
                int key = random.nextInt(load.keys());
                if (load.write()) {
                    client.set(key);
                } else {
                    client.get(key);
                }
                long after = System.nanoTime();
                latency.recordValue(Math.min(after - now, TimeUnit.MINUTES.toNanos(1)));
                now = after;
            }
        }
        return latency;
    }
}

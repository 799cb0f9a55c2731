package io.kvcache.bench.server;

import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/// Resident memory of the server while values of mixed sizes come and go for long, and every SET evicts.
///
/// The bound is what values may take, a tenth of it for what is known of them, and 500 MiB for the JVM.
///
/// @param time how long
record SoakBenchmark(Duration time) implements ServerBenchmark {

    private static final long HOST_BYTES = 2L << 30;
    private static final long BOUND_BYTES = HOST_BYTES + HOST_BYTES / 10 + (500L << 20);
    private static final int CONNECTIONS = 4;
    private static final Duration SAMPLE_INTERVAL = Duration.ofSeconds(1);
    private static final Duration REPORT_INTERVAL = Duration.ofSeconds(30);

    @Override
    public String name() {
        return "soak";
    }

    @Override
    public String title() {
        return "resident memory while values of mixed sizes come and go";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        benchmarkOptions.report("soaking for " + time.toSeconds() + " s");
        try (ServerProcess ours = ServerProcess.startCurrent(HOST_BYTES);
                ExecutorService threads = Executors.newFixedThreadPool(CONNECTIONS)) {
            long end = System.nanoTime() + time.toNanos();
            List<Future<MixedTraffic>> running = new ArrayList<>();
            for (int i = 0; i < CONNECTIONS; i++) {
                long seed = i;
                running.add(threads.submit(() -> MixedTraffic.runUntil(end, ours.port(), seed, HOST_BYTES)));
            }
            long most = watch(ours, end, benchmarkOptions);
            MixedTraffic all = MixedTraffic.NONE;
            for (Future<MixedTraffic> each : running) {
                all = all.plus(each.get());
            }
            return answers(most, all);
        } catch (ExecutionException failed) {
            throw new IOException("a client failed: " + failed.getCause(), failed.getCause());
        }
    }

    private static long watch(ServerProcess server, long end, BenchmarkOptions benchmarkOptions)
            throws IOException, InterruptedException {
        long most = 0;
        long reportAt = System.nanoTime() + REPORT_INTERVAL.toNanos();
        while (System.nanoTime() < end) {
            long resident = residentBytes(server.processId());
            most = Math.max(most, resident);
            if (System.nanoTime() >= reportAt) {
                benchmarkOptions.report(mebibytes(resident) + " MiB resident, at most " + mebibytes(most)
                        + " so far, of " + mebibytes(BOUND_BYTES));
                reportAt += REPORT_INTERVAL.toNanos();
            }
            Thread.sleep(SAMPLE_INTERVAL);
        }
        return most;
    }

    private static long residentBytes(long processId) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/" + processId + "/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", "")) << 10;
            }
        }
        throw new IOException("/proc/" + processId + "/status has no VmRSS: the server has ended");
    }

    private static List<BenchResult> answers(long most, MixedTraffic traffic) {
        PairedSamples resident = new PairedSamples();
        resident.add((double) mebibytes(most), (double) mebibytes(BOUND_BYTES));
        PairedSamples turned = new PairedSamples();
        turned.add((double) traffic.setBytes() / HOST_BYTES, 0);
        PairedSamples found = new PairedSamples();
        found.add((double) traffic.found() / Math.max(1, traffic.gets()), 0);
        return List.of(
                resident.toResult(
                        new MetricSpec("soak-resident", "How much memory was resident at most?", "MiB"),
                        "bound",
                        new Threshold.RatioAtMost(1)),
                turned.toResult(
                        new MetricSpec("soak-turned", "How many times over was the memory filled?", "times"),
                        "-",
                        new Threshold.NoThreshold()),
                found.toResult(
                        new MetricSpec("soak-found", "Which part of the GETs found their value?", "of all"),
                        "-",
                        new Threshold.NoThreshold()));
    }

    private static long mebibytes(long bytes) {
        return bytes >> 20;
    }

    /// SETs and GETs of values of 1 KiB to 32 MiB, each size as likely as its double.
    ///
    /// @param setBytes of values that were set
    /// @param gets how many
    /// @param found of them
    private record MixedTraffic(long setBytes, long gets, long found) {

        static final MixedTraffic NONE = new MixedTraffic(0, 0, 0);

        private static final int MIN_LOG2 = 10;
        private static final int MAX_LOG2 = 25;

        /// Returns three times as many keys as fit at the mean size of 2.1 MiB.
        private static int keys(long hostBytes) {
            return (int) (3 * hostBytes / (2200L << 10));
        }

        /// Half of them SETs, on one connection, until a time of [System#nanoTime].
        static MixedTraffic runUntil(long end, int port, long seed, long hostBytes) throws IOException {
            Random random = new Random(seed);
            int keys = keys(hostBytes);
            MixedTraffic sum = NONE;
            try (ValueClient client = new ValueClient(port, 1 << MAX_LOG2, true)) {
                while (System.nanoTime() - end < 0) {
                    int key = random.nextInt(keys);
                    if (random.nextBoolean()) {
                        int bytes = size(random);
                        client.setValue(key, bytes);
                        sum = sum.plus(new MixedTraffic(bytes, 0, 0));
                    } else {
                        sum = sum.plus(new MixedTraffic(0, 1, client.getValue(key) ? 1 : 0));
                    }
                }
            }
            return sum;
        }

        private static int size(Random random) {
            double exponent = MIN_LOG2 + (MAX_LOG2 - MIN_LOG2) * random.nextDouble();
            return (int) Math.pow(2, exponent);
        }

        MixedTraffic plus(MixedTraffic other) {
            return new MixedTraffic(setBytes + other.setBytes, gets + other.gets, found + other.found);
        }
    }
}

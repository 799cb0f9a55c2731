package io.kvcache.bench.transport;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;

/// Moves the same blocks through the remote cache and to a bare responder in turn, round by round, so
/// that what else the machine does meets both.
public final class TransportComparison {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20);
    private static final List<Integer> IN_FLIGHT = List.of(1, 4);
    private static final int CONNECTIONS = 2;

    private final int rounds;
    private final Duration time;
    private final Consumer<String> progress;

    /// How long to measure.
    ///
    /// @param rounds times that each cargo is moved by each
    /// @param time of each round
    /// @param progress told what is about to run
    public TransportComparison(int rounds, Duration time, Consumer<String> progress) {
        this.rounds = rounds;
        this.time = time;
        this.progress = progress;
    }

    /// All cells: four operations, three sizes, two numbers in flight.
    public List<TransportCell> run() throws IOException, InterruptedException {
        try (TransportServer server = TransportServer.start();
                RemoteClient ours = new RemoteClient("127.0.0.1:" + server.port(), CONNECTIONS);
                BareClient bare = new BareClient(server.barePort(), CONNECTIONS, SIZES.getLast())) {
            List<TransportCell> cells = new ArrayList<>();
            for (int bytes : SIZES) {
                ours.fill(bytes);
                for (Operation operation : Operation.values()) {
                    warm(ours, bare, new Cargo(operation, bytes, 2));
                    for (int inFlight : IN_FLIGHT) {
                        cells.add(cell(ours, bare, new Cargo(operation, bytes, inFlight)));
                    }
                }
                ours.empty(bytes);
            }
            return cells;
        }
    }

    private void warm(Contestant ours, Contestant bare, Cargo cargo) throws InterruptedException {
        progress.accept("warming " + cargo.operation().text() + " of " + (cargo.bytes() >> 10) + " KiB");
        move(ours, cargo, time.multipliedBy(2));
        move(bare, cargo, time.multipliedBy(2));
    }

    private TransportCell cell(Contestant ours, Contestant bare, Cargo cargo) throws InterruptedException {
        progress.accept(
                cargo.operation().text() + " " + (cargo.bytes() >> 10) + " KiB, " + cargo.inFlight() + " in flight");
        List<Moves> own = new ArrayList<>();
        List<Moves> other = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            own.add(move(ours, cargo, time));
            other.add(move(bare, cargo, time));
            ratios.add(own.getLast().gigabytes() / other.getLast().gigabytes());
        }
        return new TransportCell(cargo, median(own), median(other), median(ratios, ratio -> ratio));
    }

    private static Moves median(List<Moves> all) {
        return new Moves(median(all, Moves::gigabytes), median(all, Moves::p50Micros), median(all, Moves::p99Micros));
    }

    private static <T> double median(List<T> all, ToDoubleFunction<T> value) {
        List<T> sorted = all.stream().sorted(Comparator.comparingDouble(value)).toList();
        return value.applyAsDouble(sorted.get(sorted.size() / 2));
    }

    private static Moves move(Contestant by, Cargo cargo, Duration time) throws InterruptedException {
        AtomicLong number = new AtomicLong();
        long start = System.nanoTime();
        long end = start + time.toNanos();
        List<long[]> latencies = new ArrayList<>();
        try (ExecutorService threads = Executors.newFixedThreadPool(cargo.inFlight())) {
            List<Future<long[]>> running = new ArrayList<>();
            for (int i = 0; i < cargo.inFlight(); i++) {
                running.add(threads.submit(() -> moves(by, cargo, number, end)));
            }
            for (Future<long[]> each : running) {
                latencies.add(each.get());
            }
        } catch (ExecutionException failed) {
            throw new IllegalStateException("a block was not moved", failed.getCause());
        }
        double seconds = (System.nanoTime() - start) / 1e9;
        long[] all = latencies.stream().flatMapToLong(Arrays::stream).sorted().toArray();
        double bytes = (double) all.length * cargo.moveBytes();
        return new Moves(bytes / seconds / 1e9, all[all.length / 2] / 1e3, all[all.length * 99 / 100] / 1e3);
    }

    private static long[] moves(Contestant by, Cargo cargo, AtomicLong number, long end)
            throws IOException, InterruptedException {
        long[] nanos = new long[1024];
        int count = 0;
        long now = System.nanoTime();
        do {
            if (!by.move(cargo, number.incrementAndGet())) {
                throw new IllegalStateException(cargo.operation().text() + " of a block failed");
            }
            long after = System.nanoTime();
            if (count == nanos.length) {
                nanos = Arrays.copyOf(nanos, 2 * count);
            }
            nanos[count] = after - now;
            count++;
            now = after;
        } while (now < end);
        return Arrays.copyOf(nanos, count);
    }
}

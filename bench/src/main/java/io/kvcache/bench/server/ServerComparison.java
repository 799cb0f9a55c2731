package io.kvcache.bench.server;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.ToDoubleFunction;

/// Puts the same loads on two servers in turn, round by round, so that what else the machine does meets both.
public final class ServerComparison {

    private static final List<Integer> SIZES = List.of(64 << 10, 1 << 20, 4 << 20, 32 << 20);
    private static final List<Integer> CONNECTIONS = List.of(1, 2, 8);

    private final Contender ours;
    private final Contender theirs;
    private final int rounds;
    private final Duration time;
    private final Consumer<String> progress;

    /// @param rounds times that each load is put on each server
    /// @param time of a load on one server
    /// @param progress told what is about to run
    public ServerComparison(Contender ours, Contender theirs, int rounds, Duration time, Consumer<String> progress) {
        this.ours = ours;
        this.theirs = theirs;
        this.rounds = rounds;
        this.time = time;
        this.progress = progress;
    }

    /// All cells: GET and SET, four sizes, three numbers of connections.
    public List<Cell> run() throws IOException, InterruptedException {
        warm();
        List<Cell> cells = new ArrayList<>();
        for (int bytes : SIZES) {
            new LoadRun(new Load(true, bytes, 1), ours.port()).fill();
            new LoadRun(new Load(true, bytes, 1), theirs.port()).fill();
            for (boolean write : List.of(false, true)) {
                for (int connections : CONNECTIONS) {
                    cells.add(cell(new Load(write, bytes, connections)));
                }
            }
        }
        return cells;
    }

    private void warm() throws IOException, InterruptedException {
        progress.accept("warming both");
        for (int port : List.of(ours.port(), theirs.port())) {
            for (int bytes : List.of(64 << 10, 1 << 20)) {
                Load load = new Load(true, bytes, 2);
                new LoadRun(load, port).fill();
                new LoadRun(load, port).run(time.multipliedBy(2));
                new LoadRun(new Load(false, bytes, 2), port).run(time.multipliedBy(2));
            }
        }
    }

    private Cell cell(Load load) throws IOException, InterruptedException {
        progress.accept(load.operation() + " " + (load.bytes() >> 10) + " KiB, " + load.connections() + " connections");
        List<LoadResult> own = new ArrayList<>();
        List<LoadResult> other = new ArrayList<>();
        List<Double> ratios = new ArrayList<>();
        for (int round = 0; round < rounds; round++) {
            own.add(new LoadRun(load, ours.port()).run(time));
            other.add(new LoadRun(load, theirs.port()).run(time));
            ratios.add(own.getLast().perSecond() / other.getLast().perSecond());
        }
        return new Cell(load, median(own), median(other), median(ratios, ratio -> ratio));
    }

    private static LoadResult median(List<LoadResult> results) {
        return new LoadResult(
                median(results, LoadResult::perSecond),
                median(results, LoadResult::p50Micros),
                median(results, LoadResult::p99Micros));
    }

    private static <T> double median(List<T> all, ToDoubleFunction<T> value) {
        List<T> sorted = all.stream().sorted(Comparator.comparingDouble(value)).toList();
        return value.applyAsDouble(sorted.get(sorted.size() / 2));
    }

    /// Of the ratios of the cells that set, or of those that get.
    public static double geometricMean(List<Cell> cells, boolean write) {
        return Math.exp(cells.stream()
                .filter(cell -> cell.load().write() == write)
                .mapToDouble(cell -> Math.log(cell.ratio()))
                .average()
                .orElse(0));
    }
}

package io.kvcache.bench.transport;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSpec;
import io.kvcache.bench.suite.MetricSource;
import io.kvcache.bench.suite.Threshold;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/// What the comparisons found, as answers that can be recorded: for each cell how fast it is, and how long half and
/// nearly all of its blocks take.
///
/// @param by what carries the blocks, as names begin with it
/// @param against what it is held against
/// @param rounds of each
public record TransportAnswers(String by, String against, int rounds) {

    /// Decides what a cell's bytes a second have to reach.
    @FunctionalInterface
    public interface Wanted {

        /// The budget of a cell.
        Threshold of(Cargo cargo);
    }

    /// Six answers for each cell: how fast, how long half and nearly all of its blocks take, and what it costs.
    public List<BenchResult> of(List<TransportCell> cells, Wanted wanted) {
        List<BenchResult> answers = new ArrayList<>();
        for (TransportCell cell : cells) {
            Figures figures = new Figures(cell.ours(), cell.bare(), cell.ratio());
            String what = cell.cargo().operation().text();
            add(answers, what, cell.cargo(), figures, wanted.of(cell.cargo()), new Threshold.NoThreshold());
            String name = name(what, cell.cargo());
            answers.add(costs(name + "-cpu", "How much processor time of both?", "s/GB", cell, Cost::processorSeconds));
            answers.add(costs(name + "-heap", "How much heap of this process a block?", "B", cell, Cost::heapBytes));
            answers.add(costs(name + "-server-heap", "And of the server's?", "B", cell, Cost::serverHeapBytes));
        }
        return answers;
    }

    private BenchResult costs(
            String name, String text, String unit, TransportCell cell, ToDoubleFunction<Cost> figure) {
        double own = figure.applyAsDouble(cell.cost());
        double other = figure.applyAsDouble(cell.bareCost());
        return answer(
                new Asked(name, text, unit),
                new Pair(own, other, other == 0 ? 0 : own / other),
                new Threshold.NoThreshold());
    }

    /// One answer of what half of the matches take, one of nearly all, and one of heap, for each cell.
    public static List<BenchResult> ofMatches(List<MatchCell> cells, int rounds) {
        List<BenchResult> answers = new ArrayList<>();
        for (MatchCell cell : cells) {
            TransportAnswers of = new TransportAnswers(cell.by(), "-", rounds);
            String name = "match-1024-" + cell.by() + (cell.told() ? "-told" : "-new");
            answers.add(of.answer(
                    new Asked(name + "-p50", "How long do half of the matches of 1,024 keys take?", "us"),
                    new Pair(cell.moves().p50Micros(), 0, 0),
                    TransportBudgets.match(cell.by())));
            answers.add(of.answer(
                    new Asked(name + "-p99", "And 99 of 100?", "us"),
                    new Pair(cell.moves().p99Micros(), 0, 0),
                    new Threshold.NoThreshold()));
            answers.add(of.answer(
                    new Asked(name + "-heap", "How much heap of this process a match?", "B"),
                    new Pair(cell.cost().heapBytes(), 0, 0),
                    new Threshold.NoThreshold()));
        }
        return answers;
    }

    /// Four answers for each cell: what a request leaves on the heap and what each further block of
    /// it does, here and at the server.
    public static List<BenchResult> ofHeap(List<HeapCell> cells) {
        List<BenchResult> answers = new ArrayList<>();
        for (HeapCell cell : cells) {
            TransportAnswers of = new TransportAnswers(cell.what(), "-", 1);
            String name = "heap-" + cell.what().replace(' ', '-');
            of.heap(
                    answers,
                    name + "-request",
                    "How much heap does " + cell.what() + " of a block take?",
                    cell.request());
            of.heap(answers, name + "-block", "And of each further one?", cell.block());
            of.heap(answers, name + "-server-request", "How much of the server's?", cell.serverRequest());
            of.heap(answers, name + "-server-block", "And of each further one?", cell.serverBlock());
        }
        return answers;
    }

    private void heap(List<BenchResult> to, String name, String text, double bytes) {
        to.add(answer(new Asked(name, text, "B"), new Pair(bytes, 0, 0), new Threshold.NoThreshold()));
    }

    /// Three answers for each cell, and one of the server's processor time.
    public List<BenchResult> ofShared(List<SharedCell> cells) {
        List<BenchResult> answers = new ArrayList<>();
        for (SharedCell cell : cells) {
            String use = cell.use().name().toLowerCase(Locale.ROOT).replace('_', '-');
            Figures figures = new Figures(cell.ours(), cell.bare(), cell.ratio());
            add(
                    answers,
                    use,
                    cell.cargo(),
                    figures,
                    TransportBudgets.speed(cell.use(), cell.cargo()),
                    TransportBudgets.half(cell.use(), cell.cargo()));
            String name = name(use, cell.cargo()) + "-server";
            answers.add(answer(
                    new Asked(name, "How long does the server's process work for a block?", "us"),
                    new Pair(cell.serverMicros(), 0, 0),
                    TransportBudgets.server(cell.use())));
        }
        return answers;
    }

    private record Figures(Moves ours, Moves other, double ratio) {}

    private record Asked(String name, String text, String unit) {}

    private record Pair(double value, double other, double ratio) {}

    private void add(List<BenchResult> to, String what, Cargo cargo, Figures figures, Threshold speed, Threshold half) {
        String name = name(what, cargo);
        String block = "%s of %d KiB, %d in flight".formatted(what, cargo.bytes() >> 10, cargo.inFlight());
        Moves ours = figures.ours;
        Moves other = figures.other;
        to.add(answer(
                new Asked(name, "How fast is " + block + "?", "GB/s"),
                new Pair(ours.gigabytes(), other.gigabytes(), figures.ratio),
                speed));
        to.add(answer(
                new Asked(name + "-p50", "How long do half take?", "us"),
                new Pair(ours.p50Micros(), other.p50Micros(), ours.p50Micros() / other.p50Micros()),
                half));
        to.add(answer(
                new Asked(name + "-p99", "And 99 of 100?", "us"),
                new Pair(ours.p99Micros(), other.p99Micros(), ours.p99Micros() / other.p99Micros()),
                new Threshold.NoThreshold()));
    }

    private String name(String what, Cargo cargo) {
        return "%s-%s-%dk-%d".formatted(by, what.replace(' ', '-'), cargo.bytes() >> 10, cargo.inFlight());
    }

    private BenchResult answer(Asked asked, Pair pair, Threshold budget) {
        BenchmarkSpec question = new BenchmarkSpec(
                asked.name,
                asked.text,
                asked.unit,
                new MetricSource.ConstantMetric(by, () -> pair.value),
                new MetricSource.ConstantMetric(against, () -> pair.other),
                budget);
        return new BenchResult(question, pair.value, pair.other, pair.ratio, rounds, "");
    }
}

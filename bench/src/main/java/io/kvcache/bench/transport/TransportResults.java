package io.kvcache.bench.transport;

import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.MetricSource;
import io.kvcache.bench.suite.Threshold;
import io.kvcache.bench.transport.HeapComparison.HeapResult;
import io.kvcache.bench.transport.MatchComparison.MatchResult;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryResult;
import io.kvcache.bench.transport.TransferEndpoint.ResourceUsage;
import io.kvcache.bench.transport.TransferMeter.TransferStats;
import io.kvcache.bench.transport.TransportComparison.TransportResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/// The results of the comparisons in a form that can be recorded: for each cell its speed, median and 99th
/// percentile.
///
/// @param by what carries the blocks, as names begin with it
/// @param against what it is held against
/// @param rounds of each
public record TransportResults(String by, String against, int rounds) {

    /// Decides what a cell's bytes a second have to reach.
    @FunctionalInterface
    public interface ThresholdRule {

        /// The budget of a cell.
        Threshold thresholdFor(TransferSpec transferSpec);
    }

    /// Six answers for each cell: how fast, how long half and nearly all of its blocks take, and what it costs.
    public List<BenchResult> transportResults(List<TransportResult> cells, ThresholdRule thresholdRule) {
        List<BenchResult> answers = new ArrayList<>();
        for (TransportResult cell : cells) {
            FigurePair figurePair = new FigurePair(cell.ours(), cell.bare(), cell.ratio());
            String what = cell.cargo().operation().label();
            add(
                    answers,
                    what,
                    cell.cargo(),
                    figurePair,
                    thresholdRule.thresholdFor(cell.cargo()),
                    new Threshold.NoThreshold());
            String name = name(what, cell.cargo());
            answers.add(costs(
                    name + "-cpu", "How much processor time of both?", "s/GB", cell, ResourceUsage::processorSeconds));
            answers.add(costs(
                    name + "-heap", "How much heap of this process a block?", "B", cell, ResourceUsage::heapBytes));
            answers.add(
                    costs(name + "-server-heap", "And of the server's?", "B", cell, ResourceUsage::serverHeapBytes));
        }
        return answers;
    }

    private BenchResult costs(
            String name, String text, String unit, TransportResult cell, ToDoubleFunction<ResourceUsage> figure) {
        double own = figure.applyAsDouble(cell.cost());
        double other = figure.applyAsDouble(cell.bareCost());
        return answer(
                new MetricLabel(name, text, unit),
                new ValuePair(own, other, other == 0 ? 0 : own / other),
                new Threshold.NoThreshold());
    }

    /// One answer of what half of the matches take, one of nearly all, and one of heap, for each cell.
    public static List<BenchResult> matchResults(List<MatchResult> cells, int rounds) {
        List<BenchResult> answers = new ArrayList<>();
        for (MatchResult cell : cells) {
            TransportResults of = new TransportResults(cell.by(), "-", rounds);
            String name = "match-1024-" + cell.by() + (cell.told() ? "-told" : "-new");
            answers.add(of.answer(
                    new MetricLabel(name + "-p50", "How long do half of the matches of 1,024 keys take?", "us"),
                    new ValuePair(cell.moves().p50Micros(), 0, 0),
                    TransportThresholds.matchMicros(cell.by())));
            answers.add(of.answer(
                    new MetricLabel(name + "-p99", "And 99 of 100?", "us"),
                    new ValuePair(cell.moves().p99Micros(), 0, 0),
                    new Threshold.NoThreshold()));
            answers.add(of.answer(
                    new MetricLabel(name + "-heap", "How much heap of this process a match?", "B"),
                    new ValuePair(cell.cost().heapBytes(), 0, 0),
                    new Threshold.NoThreshold()));
        }
        return answers;
    }

    /// Four answers for each cell: what a request leaves on the heap and what each further block of
    /// it does, here and at the server.
    public static List<BenchResult> heapResults(List<HeapResult> cells) {
        List<BenchResult> answers = new ArrayList<>();
        for (HeapResult cell : cells) {
            TransportResults of = new TransportResults(cell.what(), "-", 1);
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
        to.add(answer(new MetricLabel(name, text, "B"), new ValuePair(bytes, 0, 0), new Threshold.NoThreshold()));
    }

    /// Three answers for each cell, and one of the server's processor time.
    public List<BenchResult> sharedMemoryResults(List<SharedMemoryResult> cells) {
        List<BenchResult> answers = new ArrayList<>();
        for (SharedMemoryResult cell : cells) {
            String use = cell.use().name().toLowerCase(Locale.ROOT).replace('_', '-');
            FigurePair figurePair = new FigurePair(cell.ours(), cell.bare(), cell.ratio());
            add(
                    answers,
                    use,
                    cell.cargo(),
                    figurePair,
                    TransportThresholds.sharedMemoryRatio(cell.use(), cell.cargo()),
                    TransportThresholds.medianMicros(cell.use(), cell.cargo()));
            String name = name(use, cell.cargo()) + "-server";
            answers.add(answer(
                    new MetricLabel(name, "How long does the server's process work for a block?", "us"),
                    new ValuePair(cell.serverMicros(), 0, 0),
                    TransportThresholds.serverMicros(cell.use())));
        }
        return answers;
    }

    private record FigurePair(TransferStats ours, TransferStats other, double ratio) {}

    private record MetricLabel(String name, String text, String unit) {}

    private record ValuePair(double value, double other, double ratio) {}

    private void add(
            List<BenchResult> to,
            String what,
            TransferSpec transferSpec,
            FigurePair figurePair,
            Threshold speed,
            Threshold half) {
        String name = name(what, transferSpec);
        String block =
                "%s of %s KiB, %s in flight".formatted(what, transferSpec.bytes() >> 10, transferSpec.inFlight());
        TransferStats ours = figurePair.ours;
        TransferStats other = figurePair.other;
        to.add(answer(
                new MetricLabel(name, "How fast is " + block + "?", "GB/s"),
                new ValuePair(ours.gigabytes(), other.gigabytes(), figurePair.ratio),
                speed));
        to.add(answer(
                new MetricLabel(name + "-p50", "How long do half take?", "us"),
                new ValuePair(ours.p50Micros(), other.p50Micros(), ours.p50Micros() / other.p50Micros()),
                half));
        to.add(answer(
                new MetricLabel(name + "-p99", "And 99 of 100?", "us"),
                new ValuePair(ours.p99Micros(), other.p99Micros(), ours.p99Micros() / other.p99Micros()),
                new Threshold.NoThreshold()));
    }

    private String name(String what, TransferSpec transferSpec) {
        return "%s-%s-%sk-%s"
                .formatted(by, what.replace(' ', '-'), transferSpec.bytes() >> 10, transferSpec.inFlight());
    }

    private BenchResult answer(MetricLabel metricLabel, ValuePair pair, Threshold threshold) {
        BenchmarkSpec benchmarkSpec = new BenchmarkSpec(
                metricLabel.name,
                metricLabel.text,
                metricLabel.unit,
                new MetricSource.ConstantMetric(by, () -> pair.value),
                new MetricSource.ConstantMetric(against, () -> pair.other),
                threshold);
        return new BenchResult(benchmarkSpec, pair.value, pair.other, pair.ratio, rounds, "");
    }
}

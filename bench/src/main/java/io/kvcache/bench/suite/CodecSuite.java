package io.kvcache.bench.suite;

import io.kvcache.bench.disk.CodedDiskRounds;
import io.kvcache.bench.disk.CodedDiskRounds.Round;
import io.kvcache.bench.disk.CodedDiskRounds.Scale;
import io.kvcache.bench.jmh.CodecBenchmark;
import io.kvcache.bench.jmh.SyntheticKv.Content;
import io.kvcache.bench.link.CodedLinkRounds;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.JmhRunner.JmhRun;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// The lossless codec of disks and slow links: its speed on one core, and what it gains.
final class CodecSuite {

    private static final MetricSource COPY = bandwidth("copy");

    /// A second each.
    private static final SharedRounds<Round> ROUNDS =
            new SharedRounds<>(rounds -> CodedDiskRounds.measure(Scale.FULL, rounds), 3);

    private static final SharedRounds<CodedLinkRounds.Round> LINK_ROUNDS =
            new SharedRounds<>(CodedLinkRounds::measure, 3);

    private CodecSuite() {}

    static BenchmarkSuite suite() {
        List<BenchmarkSpec> questions = new ArrayList<>(List.of(
                speed("encode", "How fast are chunks coded?", "encode", new Threshold.AtLeast(6)),
                speed("decode", "And decoded?", "decode", new Threshold.AtLeast(6)),
                speed(
                        "encode-blocks",
                        "How fast are whole blocks coded and summed?",
                        "encodeBlocks",
                        new Threshold.NoThreshold()),
                speed("decode-blocks", "And decoded and proved?", "decodeBlocks", new Threshold.NoThreshold())));
        questions.add(new BenchmarkSpec(
                "onboard-throttled",
                "How fast are blocks acquired from a disk of 300 MB/s?",
                "GB/s",
                ROUNDS.metric("coded", Round::onboardCoded),
                ROUNDS.metric("plain", Round::onboardPlain),
                new Threshold.RatioAtLeast(1.25)));
        questions.add(new BenchmarkSpec(
                "put-throttled",
                "How long does a put of 2 MiB take while that disk writes?",
                "us",
                ROUNDS.metric("coded", Round::putCoded),
                ROUNDS.metric("plain", Round::putPlain),
                new Threshold.RatioAtMost(1.03)));
        questions.add(new BenchmarkSpec(
                "acquire-link",
                "How fast are blocks acquired over a link of 300 MB/s?",
                "GB/s",
                LINK_ROUNDS.metric("coded", CodedLinkRounds.Round::slowCoded),
                LINK_ROUNDS.metric("plain", CodedLinkRounds.Round::slowPlain),
                new Threshold.RatioAtLeast(1.25)));
        questions.add(new BenchmarkSpec(
                "acquire-link-auto",
                "And by a client that decides by itself?",
                "GB/s",
                LINK_ROUNDS.metric("measured", CodedLinkRounds.Round::slowMeasured),
                LINK_ROUNDS.metric("plain", CodedLinkRounds.Round::slowPlain),
                new Threshold.RatioAtLeast(1.25)));
        questions.add(new BenchmarkSpec(
                "acquire-loopback",
                "What does it lose over loopback?",
                "GB/s",
                LINK_ROUNDS.metric("measured", CodedLinkRounds.Round::fastMeasured),
                LINK_ROUNDS.metric("plain", CodedLinkRounds.Round::fastPlain),
                new Threshold.RatioAtLeast(0.95)));
        for (Content content : Content.values()) {
            String name = content.name().toLowerCase(Locale.ROOT);
            questions.add(new BenchmarkSpec(
                    "gain-" + name,
                    "How many times as many blocks of 2 MiB fit on a disk (" + name + ")?",
                    "times",
                    new MetricSource.ConstantMetric("coded", () -> CodecBenchmark.gain(content)),
                    new MetricSource.ConstantMetric("plain", () -> 1),
                    new Threshold.AtLeast(1.32)));
        }
        return new BenchmarkSuite("codec", "the lossless codec of disks and slow links", questions);
    }

    private static BenchmarkSpec speed(String name, String text, String benchmark, Threshold threshold) {
        return new BenchmarkSpec(name, text, "GB/s", bandwidth(benchmark), COPY, threshold);
    }

    private static MetricSource bandwidth(String benchmark) {
        return MetricSource.bandwidth(benchmark, CodecBenchmark.BYTES, JmhRun.of("CodecBenchmark." + benchmark));
    }
}

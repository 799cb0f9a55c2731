package io.kvcache.bench.suite;

import io.kvcache.bench.jmh.CodecBenchmark;
import io.kvcache.bench.jmh.SyntheticKv.Content;
import io.kvcache.bench.suite.BenchmarkSuite.BenchmarkSpec;
import io.kvcache.bench.suite.JmhRunner.JmhRun;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// The lossless codec of disks and slow links: its speed on one core, and what it gains.
final class CodecSuite {

    private static final MetricSource COPY = bandwidth("copy");

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

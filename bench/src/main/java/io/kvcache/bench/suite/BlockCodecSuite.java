package io.kvcache.bench.suite;

import io.kvcache.bench.disk.CodedDiskRounds;
import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.Suite;
import io.kvcache.bench.jmh.BlockCodecBenchmark;
import io.kvcache.bench.jmh.SyntheticKv.Content;
import io.kvcache.bench.suite.JmhProcess.JmhRun;
import io.kvcache.bench.suite.JmhSuite.JmhFigure;
import io.kvcache.bench.suite.JmhSuite.Reading;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/// The lossless codec of disks and slow links: its speed on one core, and what it gains.
public final class BlockCodecSuite {

    private static final JmhSuite SPEED = new JmhSuite(List.of(
            speed("encode", "encode"),
            speed("decode", "decode"),
            speed("encode-blocks", "encodeBlocks"),
            speed("decode-blocks", "decodeBlocks")));

    private static final List<String> DISK = List.of("onboard-throttled", "put-throttled");
    private static final List<String> LINK = List.of("acquire-link", "acquire-link-auto", "acquire-loopback");

    /// Rounds of a second each.
    private static final int ROUNDS = 9;

    private static final int QUICK_ROUNDS = 3;

    private BlockCodecSuite() {}

    public static Suite suite() {
        List<String> names = new ArrayList<>(SPEED.names());
        names.addAll(DISK);
        names.addAll(LINK);
        Arrays.stream(Content.values()).forEach(content -> names.add(gainName(content)));
        return new Suite(
                "codec", "the lossless codec of disks and slow links", names, List.of(), BlockCodecSuite::measure);
    }

    private static List<Figure> measure(Suite.Run run) throws IOException {
        List<Figure> figures = new ArrayList<>(SPEED.measure(run));
        int rounds = run.quick() ? QUICK_ROUNDS : ROUNDS;
        if (DISK.stream().anyMatch(run::wants)) {
            run.progress().accept("a disk of 300 MB/s");
            figures.addAll(onDisk(CodedDiskRounds.measure(CodedDiskRounds.Scale.FULL, rounds)));
        }
        if (LINK.stream().anyMatch(run::wants)) {
            run.progress().accept("a link of 300 MB/s");
            figures.addAll(overLink(CodedLinkRounds.measure(rounds)));
        }
        for (Content content : Content.values()) {
            if (run.wants(gainName(content))) {
                double[] plain = {1};
                figures.add(Figure.of(
                        gainName(content), "times", new double[] {BlockCodecBenchmark.gain(content)}, "plain", plain));
            }
        }
        return figures.stream().filter(figure -> run.wants(figure.name())).toList();
    }

    private static List<Figure> onDisk(List<CodedDiskRounds.Round> rounds) {
        return List.of(
                Figure.of(
                        "onboard-throttled",
                        "GB/s",
                        rounds,
                        CodedDiskRounds.Round::onboardCoded,
                        "plain",
                        CodedDiskRounds.Round::onboardPlain),
                Figure.of(
                        "put-throttled",
                        "us",
                        rounds,
                        CodedDiskRounds.Round::putCoded,
                        "plain",
                        CodedDiskRounds.Round::putPlain));
    }

    private static List<Figure> overLink(List<CodedLinkRounds.Round> rounds) {
        return List.of(
                Figure.of(
                        "acquire-link",
                        "GB/s",
                        rounds,
                        CodedLinkRounds.Round::slowCoded,
                        "plain",
                        CodedLinkRounds.Round::slowPlain),
                Figure.of(
                        "acquire-link-auto",
                        "GB/s",
                        rounds,
                        CodedLinkRounds.Round::slowMeasured,
                        "plain",
                        CodedLinkRounds.Round::slowPlain),
                Figure.of(
                        "acquire-loopback",
                        "GB/s",
                        rounds,
                        CodedLinkRounds.Round::fastMeasured,
                        "plain",
                        CodedLinkRounds.Round::fastPlain));
    }

    private static String gainName(Content content) {
        return "gain-" + content.name().toLowerCase(Locale.ROOT);
    }

    private static JmhFigure speed(String name, String benchmark) {
        return new JmhFigure(name, "GB/s", bandwidth(benchmark), bandwidth("copy"));
    }

    private static Reading bandwidth(String benchmark) {
        return Reading.bandwidth(benchmark, BlockCodecBenchmark.BYTES, JmhRun.of("BlockCodecBenchmark." + benchmark));
    }
}

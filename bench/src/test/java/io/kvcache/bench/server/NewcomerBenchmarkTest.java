package io.kvcache.bench.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class NewcomerBenchmarkTest {

    private static final BenchmarkOptions QUICK = BenchmarkOptions.quick(_ -> {});

    @Test
    void givenNoRedisBenchmark_whenRun_thenTheErrorNamesItsPackage(@TempDir Path empty) {
        Path absent = empty.resolve("redis-benchmark");
        assertThatIOException()
                .isThrownBy(() -> new NewcomerBenchmark(absent).run(QUICK))
                .withMessage(absent + " is not installed; apt-get install redis-tools");
    }

    @Test
    @Tag("slow")
    @Tag("nightly")
    void givenRedis_whenRunQuickly_thenEachLoadHasAnAnswerAndABudgetUpTo4MiB()
            throws IOException, InterruptedException {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/redis-benchmark")), "apt-get install redis-tools");
        assumeTrue(ServerProcess.isRedisInstalled(), "apt-get install redis-server");

        List<BenchResult> answers = new NewcomerBenchmark().run(QUICK);

        assertThat(answers)
                .allSatisfy(answer -> assertThat(answer.ratio())
                        .as(answer.spec().name())
                        .isPositive()
                        .isFinite());
        assertThat(answers)
                .extracting(answer -> answer.spec().name())
                .doesNotHaveDuplicates()
                .hasSize(12 + 30 + 2)
                .contains(
                        "newcomer-set-3b-p1",
                        "newcomer-get-512b-p100",
                        "newcomer-get-64k-1c",
                        "newcomer-set-4m-8c",
                        "newcomer-mean",
                        "newcomer-cpu");
        assertThat(answers)
                .filteredOn(answer -> answer.spec().threshold() instanceof Threshold.NoThreshold)
                .extracting(answer -> answer.spec().name())
                .hasSize(6)
                .allMatch(name -> name.contains("-32m-"));
    }
}

package io.kvcache.bench.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIOException;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.FigureBudgets;
import io.kvcache.bench.figure.Suite;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class RedisBenchmarkTest {

    private static final Suite.Run QUICK = Suite.Run.of(true, "", _ -> {});

    @Test
    void givenNoRedisBenchmark_whenRun_thenTheErrorNamesItsPackage(@TempDir Path empty) {
        Path absent = empty.resolve("redis-benchmark");
        assertThatIOException()
                .isThrownBy(() -> new RedisBenchmark(absent).measure(QUICK))
                .withMessage(absent + " is not installed; apt-get install redis-tools");
    }

    @Test
    @Tag("slow")
    @Tag("nightly")
    void givenRedis_whenRunQuickly_thenEachLoadHasAFigureAndABudgetUpTo4MiB() throws IOException, InterruptedException {
        assumeTrue(Files.isExecutable(Path.of("/usr/bin/redis-benchmark")), "apt-get install redis-tools");
        assumeTrue(ServerProcess.isRedisInstalled(), "apt-get install redis-server");

        List<Figure> figures = new RedisBenchmark().measure(QUICK);

        assertThat(figures)
                .allSatisfy(figure -> assertThat(figure.ratio())
                        .as(figure.name())
                        .isPositive()
                        .isFinite());
        assertThat(figures)
                .extracting(Figure::name)
                .doesNotHaveDuplicates()
                .hasSize(12 + 30 + 2)
                .contains(
                        "newcomer-set-3b-p1",
                        "newcomer-get-512b-p100",
                        "newcomer-get-64k-1c",
                        "newcomer-set-4m-8c",
                        "newcomer-mean",
                        "newcomer-cpu");
        assertThat(figures)
                .filteredOn(figure ->
                        FigureBudgets.describe("server", figure.name()).equals("-"))
                .extracting(Figure::name)
                .hasSize(6)
                .allMatch(name -> name.contains("-32m-"));
    }
}

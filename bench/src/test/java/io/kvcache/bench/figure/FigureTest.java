package io.kvcache.bench.figure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class FigureTest {

    @Test
    void givenMachineThatSwings_whenRoundsAreSummed_thenTheRatioIsTheMedianOfTheRoundsOwn() {
        Figure figure =
                Figure.of("name", "GB/s", new double[] {10, 30, 20}, "Redis", new double[] {20, 10, 25}); // 0.5, 3, 0.8
        assertThat(figure.value()).isEqualTo(20);
        assertThat(figure.reference()).isEqualTo(20);
        assertThat(figure.ratio()).isEqualTo(0.8);
        assertThat(figure.rounds()).isEqualTo(3);
    }

    @Test
    void givenReferenceThatWasCountedOnce_whenCompared_thenItStandsBesideEveryRound() {
        Figure figure = Figure.of("name", "B", new double[] {8, 16, 24}, "lines", new double[] {8});
        assertThat(figure.ratio()).isEqualTo(2);
        assertThat(Figure.of("name", "B", 1, 2, 3).ratio()).isZero();
    }

    @Test
    void givenRatios_whenAveraged_thenHalfAndDoubleCancelOut() {
        assertThat(Figure.geometricMean(List.of(0.5, 2.0, 1.0), ratio -> ratio)).isEqualTo(1.0, within(1e-9));
    }

    private static boolean isMet(String suite, String name, double value, double ratio) {
        return FigureBudgets.isMet(suite, new Figure(name, "", value, "-", 1, ratio, 1));
    }

    @ParameterizedTest
    @CsvSource({
        "core,match-whole,5000,0,true",
        "core,match-whole,5001,0,false",
        "core,put,0,0.76,true",
        "core,put,0,0.75,false",
        "policy,touch-small-20-labelled,400,9,true",
        "policy,touch-small-20-labelled,401,9,false",
        "server,get-mean,0,1.29,false",
        "server,get-64k-1c,0,0.9,true",
        "server,newcomer-get-512b-p16,0,0.89,false",
        "server,newcomer-set-4m-8c,0,0.85,true",
        "server,newcomer-set-4m-8c,0,0.84,false",
        "server,newcomer-get-32m-1c,0,0.1,true",
        "transport,aeron-acquire-1024k-4,1.9,0,false",
        "transport,shared-copy-64k-1-p50,8.1,0,false",
        "transport,shared-copy-64k-1,0,0.1,true",
        "transport,shared-copy-4096k-1,0,0.84,false",
        "transport,shared-copy-4096k-1,0,0.85,true",
        "transport,shared-copy-4096k-4,0,0.1,true",
        "transport,shared-view-4096k-1-p50,26,9,false",
        "transport,shared-view-idle-4096k-1-p50,120,9,true",
        "transport,shared-view-idle-4096k-1-p50,121,9,false",
        "transport,shared-copy-64k-4-server,1.1,0,false",
        "transport,match-1024-aeron-new-p50,201,0,false",
        "transport,match-1024-tcp-new-p50,201,0,true",
        "gpu,both at once,0,0.84,false",
        "cluster,kill-errors,1,0,false",
        "cluster,join-view,99,0,true",
        "core,unknown,0,0,true"
    })
    void givenAFigure_whenJudged_thenTheFirstLineOfTheTableThatFitsItDecides(
            String suite, String name, double value, double ratio, boolean met) {
        assertThat(isMet(suite, name, value, ratio)).isEqualTo(met);
    }

    @Test
    void givenTheTable_whenShown_thenABoundOfTheValueStandsAlone() {
        assertThat(FigureBudgets.describe("core", "match-whole")).isEqualTo("<= 5000");
        assertThat(FigureBudgets.describe("core", "put")).isEqualTo("ratio >= 0.76");
        assertThat(FigureBudgets.describe("core", "unknown")).isEqualTo("-");
        assertThat(FigureBudgets.limit("gpu", "onboard")).isEqualTo(0.95);
        assertThat(FigureBudgets.limit("gpu", "crc32c")).isZero();
    }
}

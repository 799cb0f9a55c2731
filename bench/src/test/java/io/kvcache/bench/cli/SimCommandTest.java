package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;

/// Where `sim` begins, and how that is repeated.
final class SimCommandTest {

    private static final Pattern FIRST_LINE = Pattern.compile("2 seeds from (\\d+) on, each twice, 10 steps");

    private static Matcher firstLine(Shell.Run run) {
        Matcher line = FIRST_LINE.matcher(run.out().lines().findFirst().orElse(""));
        assertThat(line.matches()).as(run.out() + run.err()).isTrue();
        return line;
    }

    /// All but how long it took.
    private static String counts(Shell.Run run) {
        return run.out().replaceFirst("clean, in .*", "");
    }

    @Test
    void givenNoSeed_whenRunTwice_thenEachBeginsElsewhereAndSaysWhereWhichRepeatsIt() {
        Shell.Run run = Shell.run("sim", "--seeds", "2", "--ticks", "10", "--threads", "1");
        assertThat(run.exitCode()).isZero();
        String first = firstLine(run).group(1);
        assertThat(firstLine(Shell.run("sim", "--seeds", "2", "--ticks", "10")).group(1))
                .isNotEqualTo(first);
        Shell.Run again = Shell.run("sim", "--seed", first, "--seeds", "2", "--ticks", "10", "--threads", "2");
        assertThat(counts(again)).isEqualTo(counts(run));
    }

    @Test
    void givenNoThreads_whenAsked_thenRefused() {
        Shell.Run run = Shell.run("sim", "--threads", "0");
        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains("--threads take 1 and up");
    }
}

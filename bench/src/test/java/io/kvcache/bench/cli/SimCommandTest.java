package io.kvcache.bench.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Where `sim` begins, and how that is repeated; and what `sim --placement` prints.
@Tag("slow")
final class SimCommandTest {

    private static final Pattern FIRST_LINE = Pattern.compile("2 seeds from (\\d+) on, each twice, 10 steps");

    private static Matcher firstLine(CommandRunner.CommandResult commandResult) {
        Matcher line =
                FIRST_LINE.matcher(commandResult.out().lines().findFirst().orElse(""));
        assertThat(line.matches()).as(commandResult.out() + commandResult.err()).isTrue();
        return line;
    }

    /// All but how long it took.
    private static String counts(CommandRunner.CommandResult commandResult) {
        return commandResult.out().replaceFirst("clean, in .*", "");
    }

    @Test
    void givenNoSeed_whenRunTwice_thenEachBeginsElsewhereAndSaysWhereWhichRepeatsIt() {
        CommandRunner.CommandResult commandResult =
                CommandRunner.runTrial("sim", "--seeds", "2", "--ticks", "10", "--threads", "1");
        assertThat(commandResult.exitCode()).isZero();
        String first = firstLine(commandResult).group(1);
        assertThat(firstLine(CommandRunner.runTrial("sim", "--seeds", "2", "--ticks", "10"))
                        .group(1))
                .isNotEqualTo(first);
        CommandRunner.CommandResult again =
                CommandRunner.runTrial("sim", "--seed", first, "--seeds", "2", "--ticks", "10", "--threads", "2");
        assertThat(counts(again)).isEqualTo(counts(commandResult));
    }

    @Test
    void givenNoThreads_whenAsked_thenRefused() {
        CommandRunner.CommandResult commandResult = CommandRunner.runTrial("sim", "--threads", "0");
        assertThat(commandResult.exitCode()).isEqualTo(2);
        assertThat(commandResult.err()).contains("--threads is 0; it takes 1 and up");
    }

    @Test
    void givenPlacement_whenRun_thenHitsAndJoinsOfEachNumberOfNodesArePrinted() {
        CommandRunner.CommandResult commandResult = CommandRunner.runTrial(
                "sim", "--placement", "--nodes", "1,3", "--blocks", "20000", "--trace", "generated:1");
        assertThat(commandResult.exitCode()).as(commandResult.err()).isZero();
        assertThat(commandResult.out())
                .contains("generated:1: 10,000 requests; room for 20,000 blocks in all (SHA-256 ")
                .containsPattern("(?m)^1 +(\\d\\d\\.\\d\\d %) +\\1 +\\1 +1\\.000 +1\\.000 +1\\.000 ")
                .containsPattern("(?m)^3 +(\\d\\d\\.\\d\\d % +){3}(\\d\\.\\d{3} +){3}1\\.0\\d\\d +2[45]\\.\\d\\d % ");
    }

    @Test
    void givenPlacementWithOptionsThatDoNotFit_whenAsked_thenRefused() {
        assertThat(CommandRunner.runTrial("sim", "--placement", "--seeds", "2").err())
                .contains("--placement does not take --seeds");
        assertThat(CommandRunner.runTrial("sim", "--placement", "--nodes", "0").err())
                .contains("--nodes is '0', must be: 1 to 4095");
        CommandRunner.CommandResult without = CommandRunner.runTrial("sim", "--nodes", "4");
        assertThat(without.exitCode()).isEqualTo(2);
        assertThat(without.err()).contains("--placement");
    }
}

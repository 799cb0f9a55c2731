package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.cli.CliRunner.CliResult;
import io.kvcache.server.cli.ClusterCommand.ClusterTable;
import org.junit.jupiter.api.Test;
import picocli.CommandLine;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The texts of `kvcache cluster`, and the arguments that it refuses.
final class ClusterTableTest {

    private static String node(String name, String more) {
        return """
                {"name":"%s","state":"serving","incarnation":"2026-11-27T15:15:44.123Z","address":"10.0.0.5:7420",
                "valueAddress":"10.0.0.5:7389","weight":3,"sharePercent":33.33,"zone":"","host":"h","version":"1","dropsAgree":true%s}
                """.formatted(name, more);
    }

    private static JsonNode json(String text) {
        return JsonMapper.shared().readTree(text);
    }

    @Test
    void givenServersWithOtherSettings_whenShown_thenEachDifferenceIsALine() {
        String cluster = """
                {"cluster":"demo","node":"kv-0","state":"serving","notServing":"","epoch":6,"digest":"6d56c23559fa067d","nodes":[%s,%s,%s,%s],
                "left":[{"name":"kv-4","secondsAgo":185,"drained":false},{"name":"kv-5","secondsAgo":59,"drained":true}]}
                """.formatted(
                        node("kv-0", ",\"configDiffers\":[]"),
                        node("kv-1", ",\"configDiffers\":[\"cluster.handover\",\"tenants.alice.quota\"]"),
                        node("kv-2", ",\"configDiffers\":null"),
                        node("kv-3", ""));
        assertThat(new ClusterTable(json(cluster)).format()).isEqualTo("""
                cluster demo: 4 servers in view 6 of kv-0, digest 6d56c23559fa067d
                NODE  STATE    SHARE   WEIGHT  DROPS  CONFIG  STARTED               ADDRESS        RESP-CLUSTER   ZONE  HOST  VERSION
                kv-0  serving  33.3 %  3       same   same    2026-11-27T15:15:44Z  10.0.0.5:7420  10.0.0.5:7389  -     h     1
                kv-1  serving  33.3 %  3       same   differ  2026-11-27T15:15:44Z  10.0.0.5:7420  10.0.0.5:7389  -     h     1
                kv-2  serving  33.3 %  3       same   -       2026-11-27T15:15:44Z  10.0.0.5:7420  10.0.0.5:7389  -     h     1
                kv-3  serving  33.3 %  3       same   -       2026-11-27T15:15:44Z  10.0.0.5:7420  10.0.0.5:7389  -     h     1
                CONFIG differs at kv-1: cluster.handover, tenants.alice.quota; GET /v1/settings at both has the values
                kv-4 left 3 min ago, without a drain
                kv-5 left 59 s ago
                """);
    }

    @Test
    void givenAHandover_whenItIsOver_thenWhatIsLeftIsSaid() {
        String drain = """
                {"node":"kv-0","state":"draining","othersServing":%d,
                "handover":{"running":false,"blocks":7,"chains":3,"left":%d,
                "values":5,"valuesLeft":%d}}
                """;
        assertThat(ClusterCommand.formatHandover(json(drain.formatted(1, 0, 0))))
                .isEqualTo("handed over 3 chains, 7 blocks, 5 values; none are left");
        assertThat(ClusterCommand.formatHandover(json(drain.formatted(1, 2, 4))))
                .isEqualTo("handed over 3 chains, 7 blocks, 5 values; 2 chains and 4 values are left, as shutdown.drain"
                        + " is over or their owners took no more; a stop tries them again");
        assertThat(ClusterCommand.formatHandover(json(drain.formatted(0, 0, 0))))
                .isEqualTo("no other server serves, so nothing could be given");
    }

    @Test
    void givenNoServer_whenWaitedFor_thenItFailsWithTheReason() throws Exception {
        try (UnresponsivePort none = new UnresponsivePort()) {
            CliResult failed = CliRunner.run("cluster", "status", "--port=" + none.number(), "--wait=3", "--timeout=0");

            assertThat(failed.exitCode()).isEqualTo(1);
            assertThat(failed.err())
                    .startsWith("kvcache: no server at 127.0.0.1:" + none.number())
                    .endsWith("; waited for 0 s for 3 servers that serve\n");
        }
    }

    @Test
    void givenANodesName_whenItIsToBeDrained_thenTheErrorSaysWhatADrainActsOn() {
        CliResult refused = CliRunner.run("cluster", "drain", "--port", "17389", "kv-1");

        assertThat(refused.exitCode()).isEqualTo(2);
        assertThat(refused.err()).isEqualTo("""
                kvcache cluster drain takes no node's name, such as 'kv-1': it acts on the server at --host and --port, \
                here 127.0.0.1:17389
                See: kvcache cluster drain --help
                """);
        assertThat(CliRunner.run("cluster", "drain", "--help").out())
                .containsIgnoringWhitespaces("Values that may change are lost", "--undo does not bring them back");
    }

    @Test
    void givenOptionsThatDoNotGoTogether_whenTyped_thenTheErrorLeadsToTheirHelp() {
        CliResult drain = CliRunner.run("cluster", "drain", "--undo", "--wait");
        assertThat(drain.exitCode()).isEqualTo(2);
        assertThat(drain.err())
                .isEqualTo("--undo takes neither --wait nor --force\nSee: kvcache cluster drain --help\n");
        assertThat(CliRunner.run("cluster", "status", "--wait=0").err())
                .isEqualTo(
                        "--wait is 0; it takes the number of servers, from 1 on\nSee: kvcache cluster status --help\n");
        assertThat(CliRunner.run("cluster", "status", "--timeout=-1").exitCode())
                .isEqualTo(2);
    }

    @Test
    void givenOptionsOfAServer_whenRepeated_thenAShellTakesThemAsTheyWere() {
        CommandLine line = new CommandLine(new Repeating());
        line.parseArgs("--host=::1", "--port=7389", "--user=al", "--password-file=/it's here", "--ca=/ca.crt", "--tls");

        Repeating typed = line.getCommand();
        assertThat(typed.server.repeated())
                .isEqualTo(" --host ::1 --port 7389 --user al --password-file '/it'\\''s here' --tls --ca /ca.crt");
        line.parseArgs();
        assertThat(typed.server.repeated()).isEmpty();
    }

    @CommandLine.Command
    private static final class Repeating {

        @CommandLine.Mixin
        private ConnectionOptions server = new ConnectionOptions();
    }
}

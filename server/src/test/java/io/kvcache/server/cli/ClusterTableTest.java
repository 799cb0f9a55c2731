package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The texts of `kvcache cluster`.
final class ClusterTableTest {

    private static String node(String name, String more) {
        return """
                {"name":"%s","state":"serving","incarnation":"2026-11-27T15:15:44.123Z","address":"10.0.0.5:7420",
                "weight":3,"sharePercent":33.33,"zone":"","host":"h","version":"1","dropsAgree":true%s}
                """.formatted(name, more);
    }

    private static JsonNode json(String text) {
        return JsonMapper.shared().readTree(text);
    }

    @Test
    void givenServersWithOtherSettings_whenShown_thenEachDifferenceIsALine() {
        String cluster = """
                {"cluster":"demo","node":"kv-0","epoch":6,"digest":"6d56c23559fa067d","nodes":[%s,%s,%s,%s]}
                """.formatted(
                        node("kv-0", ",\"configDiffers\":[]"),
                        node("kv-1", ",\"configDiffers\":[\"cluster.handover\",\"tenants.alice.quota\"]"),
                        node("kv-2", ",\"configDiffers\":null"),
                        node("kv-3", ""));
        assertThat(ClusterCommand.formatTable(json(cluster))).isEqualTo("""
                cluster demo: 4 servers in view 6 of kv-0, digest 6d56c23559fa067d
                NODE  STATE    SHARE   WEIGHT  DROPS  CONFIG  STARTED               ADDRESS        ZONE  HOST  VERSION
                kv-0  serving  33.3 %  3       same   same    2026-11-27T15:15:44Z  10.0.0.5:7420  -     h     1
                kv-1  serving  33.3 %  3       same   differ  2026-11-27T15:15:44Z  10.0.0.5:7420  -     h     1
                kv-2  serving  33.3 %  3       same   -       2026-11-27T15:15:44Z  10.0.0.5:7420  -     h     1
                kv-3  serving  33.3 %  3       same   -       2026-11-27T15:15:44Z  10.0.0.5:7420  -     h     1
                CONFIG differs at kv-1: cluster.handover, tenants.alice.quota
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
}

package io.kvcache.server;

import static io.kvcache.server.cli.CliRunner.run;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.FreePorts;
import io.kvcache.server.cli.CliRunner.CliResult;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// `kvcache cluster` at a server in this process. Here, as only this package starts a server with a membership of its
/// own.
final class ClusterCommandTest {

    private static NodeInfo other(NodeState state) {
        return new NodeInfo(
                new ClusterNode("kv-1", 1, "", "host-1"), 1_000, state, "10.0.0.6:7420", "10.0.0.6:7389", "1", 0);
    }

    @Test
    void givenAServerThatJoins_whenItsStatusIsAsked_thenItFailsAndSaysSo() throws Exception {
        int port = FreePorts.take();
        List<CliResult> meanwhile = new ArrayList<>();
        TestMembership membership = new TestMembership(() -> {
            meanwhile.add(run("cluster", "status", "--port=" + port));
            meanwhile.add(run("cluster", "status", "--port=" + port, "--wait=1", "--timeout=0"));
            meanwhile.add(run("cluster", "status", "--port=" + port, "--json"));
        });
        try (CacheServer server = membership.serve(port)) {
            assertThat(server.address().getPort()).isEqualTo(port);
        }
        String joining = "kvcache: kv-0 is joining: the cluster does not know this server yet\n";
        assertThat(meanwhile.getFirst()).isEqualTo(new CliResult(1, "", joining));
        assertThat(meanwhile.get(1))
                .isEqualTo(new CliResult(
                        1,
                        "",
                        "kvcache: 0 of 1 servers serve: kv-0 is joining: the cluster does not know this server yet;"
                                + " waited for 0 s\n"));
        assertThat(meanwhile.getLast().exitCode()).isEqualTo(1);
        assertThat(meanwhile.getLast().out()).contains("\"state\" : \"joining\"");
    }

    @Test
    void givenServersThatDoNotServe_whenWaitedFor_thenItFailsAndNamesThem() throws Exception {
        try (CacheServer server = new TestMembership(() -> {}, other(NodeState.JOINING)).serve(0)) {
            String port = "--port=" + server.address().getPort();

            CliResult missing = run("cluster", "status", port, "--wait=4", "--timeout=0");

            assertThat(missing.exitCode()).isEqualTo(1);
            assertThat(missing.out()).contains("\nkv-0  serving", "\nkv-1  joining", " 10.0.0.6:7389 ");
            assertThat(missing.err())
                    .isEqualTo("kvcache: 1 of 4 servers serve: kv-1 is joining, 2 are not in the view of kv-0;"
                            + " waited for 0 s\n");
            assertThat(run("cluster", "status", port).exitCode()).isZero();
        }
    }

    @Test
    void givenEnoughServers_whenWaitedFor_thenTheirTableIsShown() throws Exception {
        try (CacheServer server = new TestMembership(() -> {}, other(NodeState.SERVING)).serve(0)) {
            CliResult shown =
                    run("cluster", "status", "--port=" + server.address().getPort(), "--wait=2");

            assertThat(shown.exitCode()).isZero();
            assertThat(shown.err()).isEmpty();
            assertThat(shown.out()).startsWith("cluster test: 2 servers in view ");
        }
    }

    @Test
    void givenAServerThatServes_whenADrainIsUndone_thenItSaysThatThereWasNone() throws Exception {
        try (CacheServer server = new TestMembership(() -> {}).serve(0)) {
            String port = "--port=" + server.address().getPort();

            assertThat(run("cluster", "drain", port, "--undo"))
                    .isEqualTo(new CliResult(0, "kv-0 was not drained: it serves\n", ""));

            CliResult drained = run("cluster", "drain", port, "--force");
            String hint = "kvcache cluster drain --port " + server.address().getPort();
            assertThat(drained.out())
                    .contains("Values that may change are lost to clients from now on", hint + " --undo`");
            assertThat(run("cluster", "drain", port, "--undo").out()).isEqualTo("kv-0 serves again\n");
        }
    }
}

package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.TestAuthority;
import io.kvcache.server.cli.CliRunner.CliResult;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// What `config check` says of a cluster.
final class ClusterCheckTest {

    @TempDir
    private Path folder = Path.of("");

    private CliResult check(String cluster) throws IOException {
        Path file = Files.writeString(folder.resolve("kvcache.yaml"), """
                memory: { host_bytes: 64MiB }
                transport: { listen: "127.0.0.1:7420", shared_memory: off }
                cluster: { name: prod-kv, node: kv-0, %s }
                """.formatted(cluster));
        return CliRunner.run("config", "check", "--config", file.toString());
    }

    @Test
    void givenACluster_whenChecked_thenItIsSummarised() throws IOException {
        CliResult result = check("listen: 127.0.0.1, seeds: [localhost], failure_after: 1.5s");

        assertThat(result.err()).isEmpty();
        assertThat(result.exitCode()).isZero();
        assertThat(result.out())
                .contains(
                        "\ncluster prod-kv as node kv-0 at 127.0.0.1:7421, no TLS, seeds localhost:7421, weight 0.0625,"
                                + " failure timeout 1500 ms, replicas heat, handover for 600 s, zone none, clients at"
                                + " 127.0.0.1:7420\n");
        assertThat(check("listen: 127.0.0.1, replicas: reused, handover: 30s, zone: rack-1")
                        .out())
                .contains(", replicas reused, handover for 30 s, zone rack-1, clients at 127.0.0.1:7420\n");
    }

    @ParameterizedTest
    @ValueSource(strings = {"0.0.0.0:17420", "[::]:17420"})
    void givenAnAdvertisedWildcard_whenChecked_thenItIsRefused(String address) throws IOException {
        CliResult result = check("listen: 127.0.0.1, advertise: \"" + address + "\"");

        assertThat(result.exitCode()).isNotZero();
        assertThat(result.err())
                .contains("cluster.advertise is " + address + ", which stands for all addresses; it takes the one at");
    }

    @Test
    void givenNamesThatAreNotKnown_whenChecked_thenTheyAreWarnedOf() throws IOException {
        assertThat(check("listen: 127.0.0.1, seeds: [nowhere.invalid]").err())
                .startsWith("warning: ")
                .contains("kvcache.yaml:3: cluster.seeds names nowhere.invalid:7421, whose host is not known here");
        assertThat(check("listen: 127.0.0.1, dns: nowhere.invalid").err())
                .contains("kvcache.yaml:3: cluster.dns is nowhere.invalid:7421, which is not known here");
    }

    @Test
    void givenCertificatesThatCannotBeRead_whenChecked_thenTheSettingIsNamed() throws IOException {
        CliResult result = check("listen: 127.0.0.1, tls: { certificate: /none, key: /none, authority: /none }");

        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(result.err())
                .contains("kvcache.yaml:3: cluster.tls cannot be used: /none cannot be read: it does not exist");
    }

    @Test
    void givenACertificateOfAnotherNode_whenChecked_thenBothNamesAreSaid()
            throws IOException, GeneralSecurityException {
        TestAuthority authority = new TestAuthority(folder, "own");
        var _ = authority.issue("kv-1", "kv-1.example");

        CliResult result = check("listen: 127.0.0.1, tls: { certificate: %s, key: %s, authority: %s }"
                .formatted(authority.file("kv-1.pem"), authority.file("kv-1.key"), authority.file("authority")));

        assertThat(result.exitCode()).isEqualTo(1);
        assertThat(result.err())
                .contains("kvcache.yaml:3: cluster.tls cannot be used: the certificate in ")
                .contains("is for [kv-1, kv-1.example]; allowed for node 'kv-0'");
    }
}

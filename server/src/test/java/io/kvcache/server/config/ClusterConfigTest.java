package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.kvcache.server.config.ClusterConfig.ClusterAddress;
import io.kvcache.server.config.ClusterConfig.ClusterTlsConfig;
import io.kvcache.server.config.HostResources.HostName;
import io.kvcache.transport.cluster.ReplicaPolicy;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ClusterConfigTest {

    private static final HostResources MACHINE = new HostResources(16L << 30, 4);

    private static final String SMALLEST = """
            transport: { listen: 127.0.0.1:7420 }
            cluster: { name: prod-kv, listen: 127.0.0.1 }
            """;

    private static ServerConfig readAll(String yaml) throws ConfigException {
        return new ConfigReader(MACHINE, Map.of()).read(new ConfigReader.Source("f", yaml), Map.of());
    }

    private static ClusterConfig read(String yaml) throws ConfigException {
        return Objects.requireNonNull(readAll(yaml).cluster());
    }

    private static List<String> problems(String yaml) {
        return Objects.requireNonNull(catchThrowableOfType(ConfigException.class, () -> readAll(yaml)))
                .problems();
    }

    @Test
    void givenNoSettings_whenRead_thenThereIsNoCluster() throws ConfigException {
        assertThat(readAll("").cluster()).isNull();
        assertThat(readAll("cluster:\n").cluster()).isNull();
    }

    @Test
    void givenNameAndAddress_whenRead_thenTheRestIsUsual() throws ConfigException {
        assertThat(read(SMALLEST))
                .isEqualTo(new ClusterConfig(
                        "prod-kv",
                        HostName.detect(),
                        new ClusterAddress("127.0.0.1", 7421),
                        List.of(),
                        null,
                        null,
                        Duration.ofSeconds(3),
                        "auto",
                        "",
                        Duration.ofMinutes(10),
                        ReplicaPolicy.HEAT,
                        null));
    }

    @Test
    void givenAllSettings_whenRead_thenTheyCount() throws ConfigException {
        ServerConfig all = readAll("""
                transport: { listen: 0.0.0.0:7420, without_auth: true }
                cluster:
                  name: prod-kv
                  node: kv-0
                  listen: 10.0.0.5:17421
                  seeds: [kv-0, "kv-1:7422", "[fd00::5]:7423"]
                  tls: { certificate: c.pem, key: k.pem, authority: a.pem }
                  failure_after: 5s
                  weight: 2.5
                  zone: rack-4
                  handover: 1m
                  replicas: reused
                  advertise: kv-0.example:7420
                """);

        assertThat(all.cluster())
                .isEqualTo(new ClusterConfig(
                        "prod-kv",
                        "kv-0",
                        new ClusterAddress("10.0.0.5", 17421),
                        List.of(
                                new ClusterAddress("kv-0", 7421),
                                new ClusterAddress("kv-1", 7422),
                                new ClusterAddress("fd00::5", 7423)),
                        null,
                        new ClusterTlsConfig("c.pem", "k.pem", "a.pem"),
                        Duration.ofSeconds(5),
                        "2.5",
                        "rack-4",
                        Duration.ofMinutes(1),
                        ReplicaPolicy.REUSED,
                        new ClusterAddress("kv-0.example", 7420)));
        assertThat(Objects.requireNonNull(all.cluster()).seeds().getLast()).hasToString("[fd00::5]:7423");
    }

    @Test
    void givenADnsName_whenRead_thenItsPortIsTheUsualOne() throws ConfigException {
        assertThat(read(SMALLEST.replace("name:", "dns: kv.example, name:")).dns())
                .isEqualTo(new ClusterAddress("kv.example", 7421));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            listen: 127.0.0.1                                     | cluster.name is not set; it takes the same name at each server, as in prod-kv
            name: kv                                              | cluster.listen is not set; it takes an address of this machine for the other servers, as in 10.0.0.5:7421
            name: kv, listen: 10.0.0.5                            | f:2: cluster.listen is 10.0.0.5:7421, which other machines can reach, and cluster.tls is not set; it takes a loopback address, or cluster.tls.certificate, cluster.tls.key and cluster.tls.authority beside it
            name: kv, listen: 0.0.0.0                             | f:2: cluster.listen is 0.0.0.0:7421, which stands for all addresses; it takes the one at which the other servers reach this one, as in 10.0.0.5:7421
            name: kv, listen: nowhere.invalid                     | f:2: cluster.listen is nowhere.invalid:7421, whose host is not known; it takes an address of this machine, as in 10.0.0.5:7421
            name: kv, listen: 'a b'                               | f:2: cluster.listen is 'a b'; it takes HOST or HOST:PORT, as in kv-0:7421
            name: kv, listen: '127.0.0.1:0'                       | f:2: cluster.listen is '127.0.0.1:0'; it takes HOST or HOST:PORT, as in kv-0:7421, the port from 1 to 65535
            name: kv, listen: '127.0.0.1:7420'                    | f:2: cluster.listen is 127.0.0.1:7420, and transport.listen is 127.0.0.1:7420; each takes a port of its own
            name: kv, listen: '127.0.0.1:7379'                    | f:2: cluster.listen is 127.0.0.1:7379, and listen.port is 7379 at 127.0.0.1; each takes a port of its own
            name: 'k v', listen: 127.0.0.1                        | f:2: cluster.name is 'k v'; it takes 1 to 100 letters, digits, dots, dashes and underscores
            name: kv, node: '', zone: 'a/b', listen: 127.0.0.1    | f:2: cluster.zone is 'a/b'; it takes 1 to 100 letters, digits, dots, dashes and underscores
            name: kv, listen: 127.0.0.1, seeds: [a], dns: b       | f:2: cluster.dns is b:7421, and cluster.seeds are set; it takes one of them
            name: kv, listen: 127.0.0.1, seeds: ['a:b']           | f:2: cluster.seeds.0 is 'a:b'; it takes HOST or HOST:PORT, as in kv-0:7421
            name: kv, listen: 127.0.0.1, failure_after: 0.5s      | f:2: cluster.failure_after is 500ms; it takes 1s to 60s
            name: kv, listen: 127.0.0.1, handover: 25h            | f:2: cluster.handover is 1500m; it takes 0 to 24h
            name: kv, listen: 127.0.0.1, replicas: 2              | f:2: cluster.replicas is '2'; it takes none, heat, reused
            name: kv, listen: 127.0.0.1, weight: 0                | f:2: cluster.weight is '0'; it takes auto, or a number, 0.001 to 1000000
            name: kv, listen: 127.0.0.1, weight: heavy            | f:2: cluster.weight is 'heavy'; it takes auto, or a number, 0.001 to 1000000
            name: kv, listen: 127.0.0.1, advertise: kv-0          | f:2: cluster.advertise is 'kv-0'; it takes HOST:PORT, as in kv-0:7420, the port from 1 to 65535
            name: kv, listen: 127.0.0.1, tls: { certificate: c }  | f:2: cluster.tls takes certificate, key and authority, a PEM file each
            name: kv, listen: 127.0.0.1, seed: [kv-0]             | f:2: there is no setting cluster.seed; is it cluster.seeds?
            name: kv, listen: 127.0.0.1, wieght: 1                | f:2: there is no setting cluster.wieght; is it cluster.weight?
            """)
    void givenAMistake_whenRead_thenItIsNamedWithWhatIsAllowed(String cluster, String problem) {
        assertThat(problems("transport: { listen: 127.0.0.1:7420 }\ncluster: { " + cluster + " }\n"))
                .containsExactly(problem);
    }

    @ParameterizedTest
    @CsvSource({"auto", "off"})
    void givenATransportWithoutAnAddress_whenRead_thenItIsAskedFor(String transport) {
        assertThat(problems(SMALLEST.replace("127.0.0.1:7420", transport)))
                .containsExactly(
                        "f:2: cluster.listen is 127.0.0.1:7421; it takes transport.listen with HOST:PORT beside it, where"
                                + " clients and the other servers reach the blocks, as in 10.0.0.5:7420");
    }

    @Test
    void givenATransportOnLoopback_whenOtherMachinesAreMembers_thenItIsRefused() {
        String beyond = """
                transport: { listen: 127.0.0.1:7420 }
                cluster: { name: kv, listen: 10.0.0.5, tls: { certificate: c, key: k, authority: a } }
                """;
        assertThat(problems(beyond))
                .containsExactly(
                        "f:1: transport.listen is 127.0.0.1:7420, which other machines cannot reach, and cluster.listen is"
                                + " 10.0.0.5:7421; it takes an address that they reach, or cluster.advertise");
        assertThat(problems(beyond.replace("name: kv", "name: kv, advertise: localhost:7420")))
                .containsExactly(
                        "f:2: cluster.advertise is localhost:7420, which other machines cannot reach, and cluster.listen is"
                                + " 10.0.0.5:7421; it takes an address of this machine that they reach");
    }

    @Test
    void givenWeights_whenAsked_thenAutoIsTheMemoryInGibibytes() throws ConfigException {
        assertThat(read(SMALLEST).weightFor(3L << 30)).isEqualTo(3);
        assertThat(read(SMALLEST.replace("name:", "weight: 7.5, name:")).weightFor(3L << 30))
                .isEqualTo(7.5);
    }

    @ParameterizedTest
    @CsvSource({
        "127.0.0.1:0, '', 127.0.0.1:5000",
        "'[::1]:0', '', '[0:0:0:0:0:0:0:1]:5000'",
        "0.0.0.0:0, '', HOST:5000",
        "127.0.0.1:0, 'kv-0:1', kv-0:1"
    })
    void givenATransport_whenAdvertised_thenClientsReachIt(String listen, String advertise, String expected)
            throws ConfigException {
        String setting = advertise.isEmpty() ? "" : "advertise: '" + advertise + "', ";
        ServerConfig all = readAll(SMALLEST.replace("127.0.0.1:7420", "'" + listen + "', without_auth: true")
                .replace("name:", setting + "name:"));

        assertThat(Objects.requireNonNull(all.cluster()).transportAddress(all.transport(), 5000))
                .isEqualTo(expected.replace("HOST", HostName.detect()));
    }

    @Test
    void givenATransportWithTls_whenAdvertised_thenClientsUseIt() throws ConfigException {
        ServerConfig all = readAll(SMALLEST.replace("7420 }", "7420, tls: { certificate: c, key: k } }"));

        assertThat(Objects.requireNonNull(all.cluster()).transportAddress(all.transport(), 7420))
                .isEqualTo("tls:127.0.0.1:7420");
    }

    @ParameterizedTest
    @CsvSource({
        "127.0.0.1, 'kv-0:1', 127.0.0.1:5000",
        "0.0.0.0, '', HOST:5000",
        "0.0.0.0, 'kv-0:1', kv-0:5000",
        "'::1', '', '[0:0:0:0:0:0:0:1]:5000'"
    })
    void givenAListenerForRedisCluster_whenAdvertised_thenClientsReachIt(
            String address, String advertise, String expected) throws ConfigException {
        String setting = advertise.isEmpty() ? "" : "advertise: '" + advertise + "', ";
        ServerConfig all = readAll(SMALLEST.replace("name:", setting + "name:") + """
                listen: { address: '%s', without_auth: true, protocols: [resp-cluster, http] }
                """.formatted(address));

        assertThat(Objects.requireNonNull(all.cluster())
                        .valueAddress(all.access().redisClusterListener(), 5000))
                .isEqualTo(expected.replace("HOST", HostName.detect()));
    }

    @Test
    void givenNoListenerForRedisCluster_whenAdvertised_thenThereIsNoAddress() throws ConfigException {
        ServerConfig all = readAll(SMALLEST);

        assertThat(all.access().redisClusterListener()).isNull();
        assertThat(read(SMALLEST).valueAddress(null, 0)).isEmpty();
    }

    @Test
    void givenAListenerForRedisCluster_whenItCannotWork_thenTheProblemSaysWhy() {
        assertThat(problems("listen: { protocols: [resp-cluster] }"))
                .containsExactly("f:1: listen.protocols has resp-cluster, and this server is in no cluster; it takes"
                        + " cluster.name and cluster.listen beside it, or resp");
        assertThat(problems(SMALLEST + "listen: { protocols: [resp, resp-cluster] }"))
                .containsExactly("f:3: listen.protocols has resp and resp-cluster, which differ in what they answer; it"
                        + " takes one of them, and the other at a listener of its own");
        assertThat(problems(SMALLEST + """
                listeners:
                - { name: a, port: 1, protocols: [resp-cluster] }
                - { name: b, port: 2, protocols: [resp-cluster] }
                """))
                .containsExactly(
                        "f:5: listeners.1.protocols has resp-cluster, and so has listeners.0.protocols; it takes"
                                + " one listener");
        assertThat(problems("""
                transport: { listen: 0.0.0.0:7420, without_auth: true }
                cluster: { name: kv, listen: 10.0.0.5, tls: { certificate: c, key: k, authority: a } }
                listen: { protocols: [resp-cluster] }
                """))
                .containsExactly("listen.address is 127.0.0.1, which other machines cannot reach, and"
                        + " cluster.listen is 10.0.0.5:7421; with resp-cluster it takes an address that they reach, as"
                        + " clients are sent there");
    }

    @Test
    void givenTenants_whenTheirValuesAreRead_thenTheyAreMutableUnlessSet() throws ConfigException {
        ServerConfig all = readAll("tenants: [{ name: default, values: content }, { name: blue }]");

        assertThat(all.access().tenants())
                .extracting(TenantConfig::values)
                .containsExactly(TenantConfig.ValueKind.CONTENT, TenantConfig.ValueKind.MUTABLE);
    }
}

package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.kvcache.server.net.TransportKind;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class ConfigReaderTest {

    private static final Machine MACHINE = new Machine(16L << 30, 4);

    private static ServerConfig read(String yaml, Map<String, String> environment) throws ConfigException {
        return new ConfigReader(MACHINE, environment).read(new ConfigReader.Source("kvcache.yaml", yaml), Map.of());
    }

    private static List<String> problems(String yaml, Map<String, String> environment) {
        return catchThrowableOfType(ConfigException.class, () -> read(yaml, environment))
                .problems();
    }

    @Test
    void givenNothing_whenRead_thenDefaultsFitTheMachine() throws ConfigException {
        ServerConfig config = read("", Map.of());

        assertThat(config).isEqualTo(ServerConfig.defaults(MACHINE));
        assertThat(config.memory().hostBytes()).isEqualTo(2L << 30);
        assertThat(config.network().loops()).isEqualTo(4);
        assertThat(config.listen().socketAddress().getAddress().isLoopbackAddress())
                .isTrue();
    }

    @Test
    void givenAFile_whenRead_thenItsValuesCount() throws ConfigException {
        ServerConfig config = read("""
                listen:
                  port: 6400   # a comment
                memory:
                  host_bytes: 1.5GiB
                  policy: s3-fifo
                network: { transport: nio, loops: 2 }
                limits:
                  idle: 5m
                promise: { time: 500ms, percent: 10 }
                shutdown:
                  drain: 3s
                """, Map.of());

        assertThat(config.listen().port()).isEqualTo(6400);
        assertThat(config.memory().hostBytes()).isEqualTo(3L << 29);
        assertThat(config.network()).isEqualTo(new NetworkConfig(TransportKind.NIO, 2));
        assertThat(config.limits().idle()).isEqualTo(Duration.ofMinutes(5));
        assertThat(config.promise()).isEqualTo(new PromiseConfig(Duration.ofMillis(500), 10));
        assertThat(config.drain()).isEqualTo(Duration.ofSeconds(3));
    }

    @Test
    void givenFileEnvironmentAndOption_whenRead_thenTheLaterGoesBeforeTheEarlier() throws ConfigException {
        ConfigReader.Source file = new ConfigReader.Source("f", "listen: {port: 1}\nnetwork: {loops: 1}\n");
        Map<String, String> environment = Map.of("KVCACHE__LISTEN__PORT", "2", "KVCACHE__LIMITS__CONNECTIONS", "5");

        ServerConfig config = new ConfigReader(MACHINE, environment)
                .read(file, Map.of("listen.port", new ConfigReader.Option("--port", "3")));

        assertThat(config.listen().port()).isEqualTo(3);
        assertThat(config.limits().connections()).isEqualTo(5);
        assertThat(config.network().loops()).isEqualTo(1);
    }

    @Test
    void givenWhatKubernetesSetsForAServiceOfThisName_whenRead_thenItIsNoSetting() throws ConfigException {
        Map<String, String> environment = Map.of(
                "KVCACHE_PORT", "tcp://10.0.0.1:80",
                "KVCACHE_SERVICE_HOST", "10.0.0.1",
                "KVCACHE_PORT_80_TCP", "tcp://10.0.0.1:80");

        assertThat(read("", environment)).isEqualTo(ServerConfig.defaults(MACHINE));
    }

    @Test
    void givenManyMistakes_whenRead_thenEachIsSaidWithPlaceValueAndRange() {
        assertThat(problems("""
                listen:
                  port: 70000
                  adress: 1.2.3.4
                memory:
                  host_bytes: lots
                network:
                  transport: fast
                """, Map.of("KVCACHE__LIMITS__CONECTIONS", "1", "KVCACHE__NOTHING", "x")))
                .anySatisfy(
                        line -> assertThat(line).isEqualTo("kvcache.yaml:2: listen.port is 70000; it takes 0 to 65535"))
                .anySatisfy(line -> assertThat(line)
                        .isEqualTo("kvcache.yaml:3: there is no setting listen.adress; is it listen.address?"))
                .anySatisfy(
                        line -> assertThat(line).startsWith("kvcache.yaml:5: memory.host_bytes is 'lots'; it takes"))
                .anySatisfy(line -> assertThat(line)
                        .isEqualTo("kvcache.yaml:7: network.transport is 'fast'; it takes auto, io-uring, epoll, nio"))
                .anySatisfy(line -> assertThat(line)
                        .isEqualTo("KVCACHE__LIMITS__CONECTIONS: there is no setting limits.conections;"
                                + " is it limits.connections?"))
                .anySatisfy(
                        line -> assertThat(line).startsWith("KVCACHE__NOTHING: there is no setting nothing; there are"))
                .hasSize(6);
    }

    @Test
    void givenAnAddressThatOthersReach_whenReadWithoutConsent_thenItIsRefused() throws ConfigException {
        assertThat(problems("listen: {address: 0.0.0.0}", Map.of()))
                .singleElement()
                .asString()
                .startsWith("kvcache.yaml:1: listen.address is 0.0.0.0, which others can reach");
        assertThat(read("listen: {address: 0.0.0.0, without_auth: true}", Map.of())
                        .listen()
                        .withoutAuth())
                .isTrue();
    }

    @Test
    void givenMoreMemoryThanThereIs_whenRead_thenItIsRefused() {
        assertThat(problems("memory: {host_bytes: 15GiB}", Map.of()))
                .singleElement()
                .asString()
                .contains("memory.host_bytes is 16106127360; it takes up to 15461882");
    }

    @Test
    void givenNoYaml_whenRead_thenTheLineIsNamed() {
        assertThat(problems("listen:\n  port: [1\n", Map.of()))
                .first()
                .asString()
                .startsWith("kvcache.yaml:3: ");
        assertThat(problems("- a\n- b\n", Map.of())).contains("kvcache.yaml:1: the file takes `key: value` lines");
        assertThat(problems("listen:\n  port: [1]\n", Map.of()))
                .contains("kvcache.yaml:2: listen.port takes one value");
        assertThat(problems("listen:\n  port: 1\n  port: 2\n", Map.of())).hasSize(1);
    }
}

package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class TrustDomainConfigTest {

    private static final String TENANTS = """
            transport: { listen: '127.0.0.1:7420' }
            tenants: [{name: a, secret_file: /a}, {name: b, secret_file: /b}, {name: open}, \
            {name: limited, secret_file: /l, quota: 1GiB}]
            """;

    private static ServerConfig read(String yaml) throws ConfigException {
        return new ConfigReader(new HostResources(16L << 30, 4), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of());
    }

    @Test
    void givenDomains_whenRead_thenTheyAreWhatTheSettingsSay() throws ConfigException {
        ServerConfig read = read(TENANTS + """
                memory: { host_bytes: 1GiB }
                domains:
                  - { name: first, tenants: [a], host_bytes: 2GiB, shared_memory: firsts }
                  - { name: second, tenants: "b", host_bytes: 64MiB }
                """);
        assertThat(read.access().domains())
                .containsExactly(
                        new TrustDomainConfig("domains.0", "first", List.of("a"), 2L << 30, "firsts"),
                        new TrustDomainConfig("domains.1", "second", List.of("b"), 64 << 20, "off"));
        assertThat(read.access().domains().get(0).sharedMemoryDirectory()).isEqualTo(Path.of("/dev/shm/firsts"));
        assertThat(read.access().domains().get(1).sharedMemoryDirectory()).isNull();
        assertThat(read.access().domainBytes()).isEqualTo((2L << 30) + (64 << 20));
        assertThat(read("").access().domains()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            {name: x, host_bytes: 1GiB} | f:3: domains.0.tenants is not set; it takes names of tenants
            {name: x, tenants: [a]} | domains.0.host_bytes is 0; it takes 33554432 (32 MiB) and up
            {name: x, tenants: [a], host_bytes: 1GiB, shared_memory: a/b} | domains.0.shared_memory is 'a/b'; it takes off, or
            {name: x, tenants: [nobody], host_bytes: 1GiB} | domains.0.tenants has nobody; there are a, b, open, limited
            {name: x, tenants: [open], host_bytes: 1GiB} | domains.0.tenants has open, which has no secret_file
            {name: x, tenants: [limited], host_bytes: 1GiB} | domains.0.tenants has limited, which has a quota
            {name: x, tenants: [a, a], host_bytes: 1GiB} | domains.0.tenants has a, which is in a domain already
            {name: x, tenants: [a], host_bytes: 1GiB}, {name: y, tenants: [a], host_bytes: 1GiB} | domains.1.tenants has a, which is in a domain already
            {name: x, tenants: [a], host_bytes: 1GiB}, {name: x, tenants: [b], host_bytes: 1GiB} | domains.1.name is x, which is already in use
            {name: x, tenants: [a], host_bytes: 1GiB, shared_memory: s}, {name: y, tenants: [b], host_bytes: 1GiB, shared_memory: s} | domains.1.shared_memory is s, which is already in use
            {name: x, tenants: [a], host_bytes: 64GiB} | memory.host_bytes is
            {name: x, tenant: a, host_bytes: 1GiB} | there is no setting domains.0.tenant; is it domains.0.tenants?
            """)
    void givenADomainThatIsWrong_whenRead_thenItIsSaidWhy(String domains, String problem) {
        assertThat(problems(TENANTS + "domains: [" + domains + "]"))
                .anySatisfy(line -> assertThat(line).contains(problem));
    }

    @Test
    void givenDomainsWithSeveralMistakes_whenRead_thenAllAreSaid() {
        assertThat(problems(TENANTS + "domains: [{name: x, host_bytes: 1KiB, shared_memory: a/b}]"))
                .anySatisfy(line -> assertThat(line).startsWith("f:3: domains.0.tenants is not set"))
                .anySatisfy(line -> assertThat(line).startsWith("f:3: domains.0.host_bytes is 1024"))
                .anySatisfy(line -> assertThat(line).startsWith("f:3: domains.0.shared_memory is 'a/b'"));
        assertThat(problems(TENANTS + """
                        domains:
                          - {name: x, tenants: [a, open], host_bytes: 1GiB}
                          - {name: x, tenants: [a], host_bytes: 1GiB}
                        """))
                .anySatisfy(line -> assertThat(line).contains("domains.0.tenants has open, which has no secret_file"))
                .anySatisfy(line -> assertThat(line).contains("domains.1.name is x, which is already in use"))
                .anySatisfy(line -> assertThat(line).contains("domains.1.tenants has a, which is in a domain already"));
    }

    @Test
    void givenADomainAndNowhereToConnect_whenRead_thenItIsSaidWhatItTakes() {
        assertThat(problems("domains: [{name: x, tenants: [default], host_bytes: 1GiB}]\n"
                        + "tenants: [{name: default, secret_file: /s}]"))
                .anySatisfy(line -> assertThat(line).contains("it takes transport.listen beside it"));
    }

    @Test
    void givenANameThatIsTaken_whenRead_thenItIsSaid() {
        String sole = """
                tenants: [{name: default, secret_file: /s}]
                domains: [{name: x, tenants: [default], host_bytes: 1GiB, shared_memory: s}]
                """;
        assertThat(problems(sole + "transport: {listen: 'localhost:1', shared_memory: s}"))
                .anySatisfy(line -> assertThat(line).contains("domains.0.shared_memory is s, which is already in use"));
    }

    private static List<String> problems(String yaml) {
        return catchThrowableOfType(ConfigException.class, () -> read(yaml)).problems();
    }
}

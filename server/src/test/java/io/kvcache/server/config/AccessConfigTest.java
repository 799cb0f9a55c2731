package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig.KeyOwnershipConfig;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class AccessConfigTest {

    private static final HostResources MACHINE = new HostResources(16L << 30, 4);

    private static AccessConfig read(String yaml) throws ConfigException {
        return new ConfigReader(MACHINE, Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of())
                .access();
    }

    private static List<String> problems(String yaml) {
        return catchThrowableOfType(ConfigException.class, () -> read(yaml)).problems();
    }

    @Test
    void givenSeveralListeners_whenRead_thenEachIsWhatItSays() throws ConfigException {
        AccessConfig access = read("""
                tenants:
                  - { name: blue, password_hash: x, quota: 1GiB }
                  - { name: green, user: verde, password_file: /secret }
                allow_unauthenticated: [kv, health]
                listeners:
                  - { name: data, address: 0.0.0.0, port: 7000, auth: true }
                  - name: kv
                    address: 0.0.0.0
                    port: 65432
                    protocols: [lm]
                    tenant: green
                    cidrs: [10.0.0.0/8, 127.0.0.1]
                  - { name: health, address: 0.0.0.0, port: 9000, protocols: pages, hosts: "a.example, b.example" }
                """);

        assertThat(access.listeners()).extracting(ListenerConfig::name).containsExactly("data", "kv", "health");
        assertThat(access.listeners().get(0).protocols())
                .containsExactlyInAnyOrder(ListenProtocol.RESP, ListenProtocol.HTTP);
        assertThat(access.listeners().get(1).protocols()).containsExactly(ListenProtocol.LM);
        assertThat(access.listeners().get(1).auth())
                .isEqualTo(
                        new ListenerAuthConfig("green", false, true, List.of("10.0.0.0/8", "127.0.0.1/32"), List.of()));
        assertThat(access.listeners().get(2).auth().hosts()).containsExactly("a.example", "b.example");
        assertThat(access.tenants()).extracting(TenantConfig::name).containsExactly("blue", "green", "default");
        assertThat(access.tenants()).extracting(TenantConfig::user).containsExactly("blue", "verde", "default");
        assertThat(access.tenants().getFirst().quotaBytes()).isEqualTo(1L << 30);
    }

    @Test
    void givenTenantsThatKeysName_whenRead_thenTheirLabelsAreWhatTheySay() throws ConfigException {
        AccessConfig access = read("""
                tenants:
                  - { name: blue, prefixes: ["blue:", "blue/"], quota: 1GiB }
                  - { name: red, salts: [salt-of-red, another-of-red], salt_file: /salts, password_hash: x }
                """);

        assertThat(access.tenants().get(0).keyOwnership())
                .isEqualTo(new KeyOwnershipConfig(List.of("blue:", "blue/"), List.of(), null));
        assertThat(access.tenants().get(1).keyOwnership())
                .isEqualTo(new KeyOwnershipConfig(List.of(), List.of("salt-of-red", "another-of-red"), "/salts"));
        assertThat(access.tenants().get(1).toString()).doesNotContain("salt-of-red");
        assertThat(access.tenants().get(2).keyOwnership()).isEqualTo(KeyOwnershipConfig.NONE);
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            {name: a, address: 0.0.0.0} | listeners.0.address is 0.0.0.0, which other machines can reach
            {name: a, address: 0.0.0.0} | allow_unauthenticated: [a]
            {name: ok, address: 0.0.0.0} | it takes listeners.0.tenant and listeners.0.cidrs
            {name: ok, address: 0.0.0.0, protocols: [lm], tenant: blue} | it takes listeners.0.tenant and listeners.0.cidrs
            {name: ok, address: 0.0.0.0, protocols: [lm], cidrs: ["::/0"]} | it takes listeners.0.tenant and listeners.0.cidrs
            {auth: true, protocols: [lm, resp]} | lm takes a listener of its own
            {protocols: [smtp]} | it takes auto, resp, resp-cluster, lm
            {tenant: red} | listeners.0.tenant is red; there are ok, blue, default
            {auth: true, tenant: default} | no tenant has a password
            {port: 70000} | f:4: listeners.0.port is 70000; it takes 0 to 65535
            {cidrs: [10.0.0.0/33]} | it takes networks as 10.0.0.0/8
            {cidrs: [anywhere]} | it takes networks as 10.0.0.0/8
            {portt: 1} | there is no setting listeners.0.portt; is it listeners.0.port?
            {port: [1]} | listeners.0.port takes one value
            """)
    void givenAListenerThatIsWrong_whenRead_thenItIsSaidWhy(String listener, String problem) {
        assertThat(problems(
                        "tenants: [{name: ok}, {name: blue, password_hash: x}]\nallow_unauthenticated: [ok]\nlisteners:\n - "
                                + listener + "\n - {name: ok, port: 1}\n"))
                .anySatisfy(line -> assertThat(line).contains(problem));
    }

    @Test
    void givenMistakesOfSeveralKinds_whenRead_thenAllAreSaid() {
        assertThat(problems("tenants: [{name: a}, {name: a}]\nlisteners: [{name: x, port: 1, tenant: absent},"
                        + " {name: y, port: 2}, {name: y, port: 2}]\n"))
                .anySatisfy(line -> assertThat(line).contains("tenants.1.name is a, which is already in use"))
                .anySatisfy(line -> assertThat(line).contains("listeners.0.tenant is absent"))
                .anySatisfy(line -> assertThat(line).contains("listeners.2.name is y, which is already in use"))
                .anySatisfy(line -> assertThat(line).contains("listeners.2.port is 2 at"));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            listen: {port: 1}\\nlisteners: [{port: 2}] | listeners are set, and listen (or --address, --port) beside them
            listeners: [{name: a}]\\nallow_unauthenticated: [b] | allow_unauthenticated has b; there are a
            listeners: [{name: a, port: 1}, {name: a, port: 2}] | listeners.1.name is a, which is already in use
            tenants: [{name: a}, {name: a}] | tenants.1.name is a, which is already in use
            tenants: [{name: a}, {name: b, user: a}] | tenants.1.user is a, which is already in use
            tenants: [{name: 'a b'}] | tenants.0.name is 'a b'; it takes
            tenants: [{name: a, password_hash: x, password_file: y}] | it takes one of them
            listen: {auth: true} | no tenant has a password
            tenants: [{name: a, prefixes: ['']}, {name: b, prefixes: ['x*']}] | tenants.1.prefixes has 'x*'; it takes 1 to 4096
            tenants: [{name: a, prefixes: ['x']}, {name: b, prefixes: ['x']}] | tenants.1.prefixes has 'x', which another tenant has already
            tenants: [{name: a, salts: [short]}] | tenants.0.salts has an invalid one; it takes 8 to 128
            tenants: [{name: a, salts: [ends-with-metadata]}] | tenants.0.salts has an invalid one
            tenants: [{name: a, salts: [the-same-salt]}, {name: b, salts: [the-same-salt]}] | tenants.1.salts has one
            tenants: [{name: default, salts: [a-good-salt]}] | it takes them at other tenants
            tenants: [{name: a, prefixes: [a], password_hash: x}] | these would protect nothing
            """)
    void givenAConfigurationThatIsWrong_whenRead_thenItIsSaidWhy(String yaml, String problem) {
        assertThat(problems(yaml.replace("\\n", "\n")))
                .anySatisfy(line -> assertThat(line).contains(problem));
    }

    @Test
    void givenMoreTenantsThanAPolicyHasQueuesFor_whenRead_thenItIsRefused() throws ConfigException {
        StringBuilder tenants = new StringBuilder("tenants:\n");
        for (int i = 0; i < 40; i++) {
            tenants.append("  - { name: t").append(i).append(" }\n");
        }
        assertThat(read(tenants.toString()).tenants()).hasSize(41);
        assertThat(problems(tenants + "memory: { policy: two-queues }\n"))
                .anySatisfy(
                        line -> assertThat(line)
                                .contains(
                                        "memory.policy is two-queues and there are 41 tenants; with two-queues there may be 32"));
    }
}

package io.kvcache.server.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.cluster.ClusterMember.SettingsDigests;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SortedMap;
import org.junit.jupiter.api.Test;

final class SettingsDigestsTest {

    private static final String TENANT = "name: alice, prefixes: [ 'a:', 'b:' ]";

    private static SortedMap<String, Long> digests(String cluster, String tenant, String more) throws ConfigException {
        String yaml = """
                transport: { listen: 127.0.0.1:7420 }
                cluster: { name: prod-kv, node: kv-0, listen: 127.0.0.1%s }
                tenants: [ { %s } ]
                %s
                """.formatted(cluster, tenant, more);
        ServerConfig config = new ConfigReader(new HostResources(16L << 30, 4), Map.of())
                .read(new ConfigReader.Source("f", yaml), Map.of());
        return SettingsDigests.of(Objects.requireNonNull(config.cluster()), config);
    }

    private static List<String> differences(String cluster, String tenant, String more) throws ConfigException {
        SortedMap<String, Long> usual = digests("", TENANT, "");
        SortedMap<String, Long> other = digests(cluster, tenant, more);
        return other.keySet().stream()
                .filter(name -> !Objects.equals(usual.get(name), other.get(name)))
                .toList();
    }

    @Test
    void givenSettingsOfTheHostItself_whenTheyDiffer_thenNoDigestDoes() throws ConfigException {
        assertThat(differences(", weight: 5, zone: rack-2, seeds: [ kv-1 ]", TENANT, "memory: { host_bytes: 1GiB }"))
                .isEmpty();
    }

    @Test
    void givenListsInAnotherOrder_whenCompared_thenNoDigestDiffers() throws ConfigException {
        assertThat(differences("", "name: alice, prefixes: [ 'b:', 'a:' ]", "")).isEmpty();
    }

    @Test
    void givenSettingsOfTheCluster_whenOneDiffers_thenItsDigestDoes() throws ConfigException {
        assertThat(differences(", failure_after: 5s", TENANT, "")).containsExactly("cluster.failure_after");
        assertThat(differences(", handover: 1h", TENANT, "")).containsExactly("cluster.handover");
        assertThat(differences("", TENANT, "listeners: [ { name: r, port: 7389, protocols: [ resp-cluster ] } ]"))
                .containsExactly("listeners.resp-cluster");
    }

    @Test
    void givenATenant_whenASettingDiffers_thenItsDigestDoes() throws ConfigException {
        assertThat(differences("", TENANT + ", quota: 1GiB", "")).containsExactly("tenants.alice.quota");
        assertThat(differences("", TENANT + ", weight: 2", "")).containsExactly("tenants.alice.weight");
        assertThat(differences("", TENANT + ", values: content", "")).containsExactly("tenants.alice.values");
        assertThat(differences("", TENANT + ", user: al", "")).containsExactly("tenants.alice.user");
        assertThat(differences("", "name: alice, prefixes: [ 'a:' ]", "")).containsExactly("tenants.alice.prefixes");
        assertThat(differences("", "name: bob", "")).contains("tenants");
    }

    @Test
    void givenSecrets_whenTheyDiffer_thenNothingOfThemIsTold() throws ConfigException {
        assertThat(digests("", "name: alice, salts: [ 'one-of-eight' ]", ""))
                .isEqualTo(digests("", "name: alice, salts: [ 'another-one' ]", ""));
    }
}

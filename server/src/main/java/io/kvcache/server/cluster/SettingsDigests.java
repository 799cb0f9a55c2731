package io.kvcache.server.cluster;

import io.kvcache.core.identity.Sha256;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TrustDomainConfig;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/// Digests of the settings that should be the same at all servers of a cluster, as [io.kvcache.cluster] compares them.
///
/// Secrets, salts and passwords are not among them: a digest of a short one would give it away.
final class SettingsDigests {

    private SettingsDigests() {}

    /// Returns digests by the names of settings; tenants' settings have the tenant's name in theirs.
    static SortedMap<String, Long> of(ClusterConfig cluster, ServerConfig server) {
        SortedMap<String, Long> digests = new TreeMap<>();
        digests.put("cluster.failure_after", digest(cluster.failureAfter()));
        digests.put("cluster.handover", digest(cluster.handover()));
        digests.put("cluster.replicas", digest(cluster.replicas()));
        ListenerConfig redisCluster = server.access().redisClusterListener();
        digests.put(
                "listeners.resp-cluster",
                redisCluster == null
                        ? digest("none")
                        : digest(redisCluster.auth().auth() + " "
                                + redisCluster.auth().tenant()));
        List<TenantConfig> tenants = server.access().tenants();
        digests.put(
                "tenants",
                digest(tenants.stream().map(TenantConfig::name).sorted().toList()));
        tenants.forEach(tenant -> addTenant(tenant, digests));
        digests.put(
                "domains",
                digest(server.access().domains().stream()
                        .map(SettingsDigests::describe)
                        .sorted()
                        .toList()));
        return digests;
    }

    private static void addTenant(TenantConfig tenant, SortedMap<String, Long> digests) {
        String path = "tenants." + tenant.name();
        digests.put(path + ".user", digest(tenant.user()));
        digests.put(path + ".quota", digest(tenant.quotaBytes()));
        digests.put(path + ".weight", digest(tenant.weight()));
        digests.put(path + ".values", digest(tenant.values()));
        digests.put(
                path + ".prefixes",
                digest(tenant.keyOwnership().prefixes().stream().sorted().toList()));
    }

    private static String describe(TrustDomainConfig domain) {
        return domain.name() + " " + domain.tenants().stream().sorted().toList();
    }

    /// Of the value's text.
    private static long digest(Object value) {
        byte[] text = value.toString().getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.wrap(Sha256.newDigest().digest(text)).getLong();
    }
}

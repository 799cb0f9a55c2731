package io.kvcache.server.cli;

import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.server.config.ClusterConfig;
import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TenantConfig.KeyOwnershipConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.config.TrustDomainConfig;
import io.kvcache.transport.aeron.AeronAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/// A summary, in lines, of the settings that a server would use: each listener with the clients that it accepts,
/// and each tenant.
final class ConfigSummary {

    private ConfigSummary() {}

    static List<String> lines(ServerConfig config) {
        List<String> lines = new ArrayList<>();
        lines.add("good: " + new ByteSizeText(config.memory().hostBytes()) + " of host memory, "
                + config.network().loops() + " loops");
        config.access().listeners().forEach(each -> lines.add(describe(each)));
        TransportConfig transport = config.withAutoResolved(port -> true).transport();
        String asks = transport.requiresSecret(config.access().tenants()) ? ", secret required" : ", no authentication";
        if (transport.isTcpEnabled()) {
            lines.add("transport: " + transport.listen() + (transport.tls() == null ? ", no TLS" : ", TLS") + asks
                    + (config.transport().isTcpEnabled() ? "" : ", if that port is free"));
        }
        if (transport.aeron().isEnabled()) {
            AeronAddress aeron = transport.aeron().addressFor(transport.port());
            lines.add("transport: " + aeron.text() + (aeron.folder() == null ? "" : " in " + aeron.folder()) + asks);
        }
        lines.addAll(describeCluster(config));
        config.access().tenants().forEach(each -> lines.add(describe(each)));
        lines.addAll(describeDomains(config));
        for (DiskConfig disk : config.disks().disks()) {
            lines.add("disk " + disk.directory() + ": " + describeDisk(disk));
        }
        lines.addAll(describeGpus(config));
        lines.add(describeHints(config));
        return lines;
    }

    /// The cluster that the server joins, in a line; none for a server that is in none.
    static List<String> describeCluster(ServerConfig config) {
        ClusterConfig cluster = config.cluster();
        return cluster == null
                ? List.of()
                : List.of(String.format(
                        Locale.ROOT,
                        "%s, weight %.3g, failure timeout %d ms, replicas %s, handover for %d s, zone %s, clients at %s",
                        cluster.describe(),
                        cluster.weightFor(config.memory().hostBytes()),
                        cluster.failureAfter().toMillis(),
                        cluster.replicas().name().toLowerCase(Locale.ROOT),
                        cluster.handover().toSeconds(),
                        cluster.zone().isEmpty() ? "none" : cluster.zone(),
                        cluster.transportAddress(
                                config.transport(), config.transport().port())));
    }

    /// The GPUs, a line each.
    static List<String> describeGpus(ServerConfig config) {
        boolean shared = config.withAutoResolved(port -> true)
                        .transport()
                        .sharedMemoryDirectory(config.access().tenants())
                != null;
        String engines = shared
                ? ", engines of this host may connect"
                : ", no engine can connect, as the store shares no memory";
        String place = config.disks().isDurable() ? "in front of the disks" : "below host memory";
        return config.disks().gpus().stream()
                .map(gpu -> "GPU " + gpu.device() + ": "
                        + (gpu.isTier() ? new ByteSizeText(gpu.bytes()) + " for blocks " + place : "no blocks")
                        + (gpu.canResize() ? ", up to " + new ByteSizeText(gpu.maxBytes()) + " by resize" : "")
                        + engines)
                .toList();
    }

    /// Describes a disk's size and the values that fit it. A larger value stays in memory only. A value above half
    /// the limit takes as much room as the largest.
    static String describeDisk(DiskConfig disk) {
        return new ByteSizeText(disk.bytes()) + ", for values below " + new ByteSizeText(disk.regionBytes())
                + " (from about " + new ByteSizeText(disk.regionBytes() / 2) + " on each takes "
                + new ByteSizeText(disk.regionBytes()) + ")";
    }

    /// Tells where clients' hints of classes and weights matter. A disk evicts by last use and ignores them.
    private static String describeHints(ServerConfig config) {
        EvictionPolicyFactory policy = config.memory().policy();
        if (!policy.usesLabels()) {
            return "hints: LABEL and WEIGH are not taken, memory.policy is " + policy.commandName()
                    + "; they take importance. Sessions, FORGET, EXPIRE, EXPECT and PIN count";
        }
        return "hints: all count"
                + (config.disks().disks().isEmpty()
                        ? ""
                        : "; LABEL and WEIGH order evictions from memory, not from disks, which go by last use; WEIGH also"
                                + " decides what admission by value writes");
    }

    /// The trust domains, a line each.
    static List<String> describeDomains(ServerConfig config) {
        return config.access().domains().stream().map(ConfigSummary::describe).toList();
    }

    private static String describe(ListenerConfig listen) {
        ListenerAuthConfig entry = listen.auth();
        String protocols = listen.protocols().stream()
                .map(each -> each.name().toLowerCase(Locale.ROOT).replace('_', '-'))
                .sorted()
                .collect(Collectors.joining(", "));
        return "listener " + listen.name() + ": " + listen.address() + ":" + listen.port() + ", " + protocols
                + (listen.tls() == null ? ", no TLS" : ", TLS")
                + (entry.auth() ? ", password required" : ", no authentication")
                + (entry.tenant() == null ? "" : ", tenant " + entry.tenant())
                + (entry.cidrs().isEmpty() ? "" : ", from " + String.join(", ", entry.cidrs()));
    }

    private static String describe(TenantConfig tenant) {
        return "tenant " + tenant.name() + ": user " + tenant.user()
                + (tenant.hasPassword() ? "" : " without a password")
                + ", weight " + tenant.weight()
                + (tenant.quotaBytes() == 0 ? "" : ", quota " + new ByteSizeText(tenant.quotaBytes()))
                + describeOwnership(tenant.keyOwnership());
    }

    private static String describe(TrustDomainConfig domain) {
        Path folder = domain.sharedMemoryDirectory();
        return "domain " + domain.name() + ": " + new ByteSizeText(domain.hostBytes()) + " of its own for tenants "
                + String.join(", ", domain.tenants())
                + (folder == null
                        ? ", not mapped"
                        : ", which they and processes of the server's own user may map at " + folder);
    }

    /// Salts are not shown.
    private static String describeOwnership(KeyOwnershipConfig labels) {
        String salts = labels.saltFile() == null ? "" : ", keys that end with a salt of " + labels.saltFile();
        return (labels.prefixes().isEmpty() ? "" : ", keys that begin with " + String.join(" or ", labels.prefixes()))
                + (labels.salts().isEmpty()
                        ? ""
                        : ", keys that end with one of " + labels.salts().size() + " salts")
                + salts;
    }
}

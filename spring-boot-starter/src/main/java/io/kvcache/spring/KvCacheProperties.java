package io.kvcache.spring;

import io.kvcache.core.tier.AdmissionKind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/// The properties `kvcache.*`. Those of another mode than the one in use are ignored.
///
/// @param mode Kind of cache. By default embedded; with one address, cluster where the server is in one, otherwise
///     remote; with several, cluster.
/// @param hostBytes Host memory of an embedded cache, 32MiB and up; units: KiB, MiB, GiB, TiB.
/// @param policy Eviction policy of an embedded cache: importance, lru, or one that a service brings.
/// @param disks Disks of an embedded cache.
/// @param admission Which blocks an embedded cache writes to its disks: second-hit, always or value.
/// @param flushOnClose How long an embedded cache may write to its disks when the application stops, 0s to 24h.
/// @param prefetch Whether an embedded cache loads blocks from its disks ahead of requests that are likely.
/// @param addresses Address of a server, such as host:7420 or tls:host:7420, or of several servers of a cluster, one
///     of which tells the others.
/// @param tenant Tenant of this client; empty for none.
/// @param secret Secret that the server requires, at least 16 bytes.
/// @param trust PEM file with certificates to trust at addresses tls:host:port, in place of the JVM's.
/// @param sslBundle Name of an SSL bundle (spring.ssl.bundle) for addresses tls:host:port, in place of trust.
/// @param connections Connections for blocks to each server, 1 to 64.
/// @param requestTimeout Timeout of a request to a server, 10ms to 10m. By default 5s, in a cluster 1s.
/// @param memoryBytes Memory of this client for blocks and objects from each server, 1MiB and up.
/// @param startupWait How long the start waits for a server that does not answer, before it fails; up to 1h.
@ConfigurationProperties("kvcache")
public record KvCacheProperties(
        @Nullable CacheMode mode,
        @DefaultValue("1GiB") MemorySize hostBytes,
        @DefaultValue("importance") String policy,
        @DefaultValue List<Disk> disks,
        @DefaultValue("second-hit") AdmissionKind admission,
        @DefaultValue("10s") Duration flushOnClose,
        @DefaultValue("false") boolean prefetch,
        @DefaultValue List<String> addresses,
        @DefaultValue("") String tenant,
        @Nullable String secret,
        @Nullable Path trust,
        @Nullable String sslBundle,
        @DefaultValue("2") int connections,
        @Nullable Duration requestTimeout,
        @DefaultValue("512MiB") MemorySize memoryBytes,
        @DefaultValue("0s") Duration startupWait) {

    /// A disk of an embedded cache. It keeps its blocks over restarts.
    ///
    /// @param directory Directory of the disk's file, made when it is missing.
    /// @param bytes Size of the disk's file, as in 100GiB.
    public record Disk(@Nullable Path directory, @Nullable MemorySize bytes) {}

    /// Leaves out the secret.
    @Override
    public String toString() {
        return "kvcache: mode " + mode + ", host-bytes " + hostBytes + ", disks " + disks + ", addresses " + addresses;
    }
}

package io.kvcache.spring;

import io.kvcache.core.KvCache;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.core.spi.Clock;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.TieredKvCacheBuilder;
import io.kvcache.tiers.directory.DiskDirectoryException;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.function.Supplier;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.source.InvalidConfigurationPropertyValueException;
import org.springframework.boot.ssl.NoSuchSslBundleException;
import org.springframework.boot.ssl.SslBundles;

/// Opens the cache that the properties describe. A wrong value becomes an error that names its property.
final class KvCacheFactory {

    private static final System.Logger LOG = System.getLogger(KvCacheFactory.class.getName());

    private static final Duration MAX_STARTUP_WAIT = Duration.ofHours(1);
    private static final long RETRY_NANOS = Duration.ofMillis(250).toNanos();
    private static final Duration REQUEST_TIMEOUT = Duration.ofSeconds(5);
    private static final Duration CLUSTER_REQUEST_TIMEOUT = Duration.ofSeconds(1);

    private static final String ADDRESSES = "kvcache.addresses";

    private final KvCacheProperties properties;
    private final @Nullable SslBundles sslBundles;
    private final Clock clock;

    /// @param sslBundles of the application, if it has any
    /// @param clock of the wait for a server
    KvCacheFactory(KvCacheProperties properties, @Nullable SslBundles sslBundles, Clock clock) {
        this.properties = properties;
        this.sslBundles = sslBundles;
        this.clock = clock;
    }

    /// Opens the cache.
    ///
    /// @throws InvalidConfigurationPropertyValueException when a property has a value that is not allowed
    /// @throws CacheStartupException when the memory, a disk or a server cannot be used
    KvCache open() {
        CacheMode mode = properties.mode();
        if (mode == CacheMode.EMBEDDED
                || (mode == null && properties.addresses().isEmpty())) {
            return openEmbedded();
        }
        Duration wait = properties.startupWait();
        if (wait.isNegative() || wait.compareTo(MAX_STARTUP_WAIT) > 0) {
            throw invalid("kvcache.startup-wait", wait, "allowed: 0s to 1h");
        }
        if (properties.addresses().isEmpty()) {
            throw invalid(ADDRESSES, "", "it is empty and kvcache.mode is " + mode + "; allowed: 1 address and up");
        }
        boolean several = properties.addresses().size() > 1;
        if (several && mode == CacheMode.REMOTE) {
            throw invalid(
                    ADDRESSES,
                    properties.addresses(),
                    "kvcache.mode is remote; allowed: 1 address, or several with kvcache.mode cluster");
        }
        return connect(several ? CacheMode.CLUSTER : mode);
    }

    private TieredKvCache openEmbedded() {
        TieredKvCacheBuilder builder = TieredKvCache.builder();
        MemorySize hostBytes = properties.hostBytes();
        check("kvcache.host-bytes", hostBytes, () -> builder.hostBytes(hostBytes.bytes()));
        Duration flushOnClose = properties.flushOnClose();
        check("kvcache.flush-on-close", flushOnClose, () -> builder.flushOnClose(flushOnClose));
        builder.policy(policy()).admission(properties.admission()).prefetch(properties.prefetch());
        for (int i = 0; i < properties.disks().size(); i++) {
            addDisk(builder, "kvcache.disks[" + i + "]", properties.disks().get(i));
        }
        try {
            return builder.build();
        } catch (DiskDirectoryException unusable) {
            throw new CacheStartupException(
                    "A disk of the cache cannot be used: " + unusable.getMessage(),
                    "Make the directory usable, or set another one in kvcache.disks[].directory.",
                    unusable);
        } catch (IllegalStateException refused) {
            throw new CacheStartupException(
                    "The host memory of the cache cannot be reserved: " + refused.getMessage(),
                    "Do what the description says, or set kvcache.host-bytes to less than " + hostBytes + ".",
                    refused);
        }
    }

    private EvictionPolicyFactory policy() {
        String name = properties.policy();
        return EvictionPolicies.find(name)
                .orElseThrow(() -> invalid("kvcache.policy", name, "allowed: " + EvictionPolicies.names()));
    }

    private static void addDisk(TieredKvCacheBuilder builder, String property, KvCacheProperties.Disk disk) {
        Path directory = disk.directory();
        MemorySize bytes = disk.bytes();
        if (directory == null || directory.toString().isEmpty()) {
            throw invalid(property + ".directory", "", "it is missing; allowed: the path of a directory");
        }
        if (bytes == null) {
            throw invalid(property + ".bytes", "", "it is missing; allowed: a size, as in 100GiB");
        }
        check(property + ".bytes", bytes, () -> builder.disk(directory, bytes.bytes()));
    }

    private KvCache connect(@Nullable CacheMode mode) {
        for (String address : properties.addresses()) {
            builder(address, REQUEST_TIMEOUT); // throws for a wrong property, which no wait makes right
        }
        long deadline = clock.nanos() + properties.startupWait().toNanos();
        for (boolean first = true; ; first = false) {
            try {
                return connectNow(mode);
            } catch (UncheckedIOException unreachable) {
                if (deadline - clock.nanos() <= 0) {
                    throw unreachable(unreachable);
                }
                if (first) {
                    LOG.log(
                            System.Logger.Level.INFO,
                            "waiting up to " + properties.startupWait() + " for a server: " + unreachable.getMessage());
                }
                clock.sleep(RETRY_NANOS);
            }
        }
    }

    private KvCache connectNow(@Nullable CacheMode mode) {
        if (mode == CacheMode.CLUSTER) {
            try {
                return connectCluster();
            } catch (IllegalStateException noCluster) {
                throw new CacheStartupException(
                        (properties.mode() == null ? ADDRESSES + " has several servers" : "kvcache.mode is cluster")
                                + ", but the server is in no cluster: " + noCluster.getMessage(),
                        "Set kvcache.mode to remote and give one address, or give those of a cluster, in " + ADDRESSES
                                + ".",
                        noCluster);
            }
        }
        RemoteKvCache remote =
                builder(properties.addresses().getFirst(), REQUEST_TIMEOUT).connect();
        if (mode == null && isInCluster(remote)) {
            remote.close();
            return connectCluster();
        }
        return remote;
    }

    private static boolean isInCluster(RemoteKvCache remote) {
        try {
            return remote.view(0, Duration.ZERO) != null;
        } catch (IllegalStateException noCluster) {
            return false;
        }
    }

    private ClusteredKvCache connectCluster() {
        return ClusteredKvCache.connect(
                properties.addresses(),
                address -> builder(address, CLUSTER_REQUEST_TIMEOUT).connect());
    }

    /// Returns a builder of a client with all properties of one.
    ///
    /// @param defaultTimeout of a request, if the properties have none
    private RemoteKvCacheBuilder builder(String address, Duration defaultTimeout) {
        RemoteKvCacheBuilder builder = check(ADDRESSES, address, () -> RemoteKvCache.builder(address));
        builder.tenant(properties.tenant());
        int connections = properties.connections();
        check("kvcache.connections", connections, () -> builder.connections(connections));
        Duration timeout = properties.requestTimeout() == null ? defaultTimeout : properties.requestTimeout();
        check("kvcache.request-timeout", timeout, () -> builder.requestTimeout(timeout));
        MemorySize memory = properties.memoryBytes();
        check("kvcache.memory-bytes", memory, () -> builder.memoryBytes(memory.bytes()));
        addSecret(builder);
        if (isEncrypted(address) || properties.addresses().stream().noneMatch(KvCacheFactory::isEncrypted)) {
            addTrust(builder);
        }
        return builder;
    }

    private static boolean isEncrypted(String address) {
        return address.startsWith("tls:");
    }

    /// Not by [#check], as Spring Boot shows the value of a wrong property.
    private void addSecret(RemoteKvCacheBuilder builder) {
        String secret = properties.secret();
        if (secret != null) {
            try {
                builder.secret(secret);
            } catch (IllegalArgumentException wrong) {
                throw new CacheStartupException(
                        "Property kvcache.secret is invalid: " + wrong.getMessage(),
                        "Set kvcache.secret to the secret of the server, of 16 bytes and up.",
                        wrong);
            }
        }
    }

    private void addTrust(RemoteKvCacheBuilder builder) {
        Path trust = properties.trust();
        String bundle = properties.sslBundle();
        if (trust != null && bundle != null) {
            throw invalid("kvcache.ssl-bundle", bundle, "kvcache.trust is set, too; allowed: one of them");
        }
        if (trust != null) {
            try {
                check("kvcache.trust", trust, () -> builder.trust(trust));
            } catch (UncheckedIOException unusable) {
                throw invalid(
                        "kvcache.trust", trust, unusable.getMessage() + "; allowed: a PEM file with certificates");
            }
        }
        if (bundle != null) {
            SSLContext context = sslContext(bundle);
            check("kvcache.ssl-bundle", bundle, () -> builder.trust(context));
        }
    }

    private SSLContext sslContext(String bundle) {
        if (sslBundles == null) {
            throw invalid("kvcache.ssl-bundle", bundle, "the application has no SSL bundles");
        }
        try {
            return sslBundles.getBundle(bundle).createSslContext();
        } catch (NoSuchSslBundleException unknown) {
            throw invalid(
                    "kvcache.ssl-bundle",
                    bundle,
                    "there is no such bundle; allowed: " + String.join(", ", sslBundles.getBundleNames()));
        }
    }

    private CacheStartupException unreachable(UncheckedIOException cause) {
        String waited = properties.startupWait().isZero() ? "" : " within " + properties.startupWait();
        return new CacheStartupException(
                "No KVCache server at kvcache.addresses accepted this application" + waited + ": " + cause.getMessage(),
                "Start the server (./kvcache serve --transport HOST:PORT), correct kvcache.addresses, kvcache.secret or"
                        + " kvcache.trust, or set kvcache.startup-wait (for example 30s) to wait for the server.",
                cause);
    }

    /// Runs what checks a value.
    private static <T> T check(String property, Object value, Supplier<T> action) {
        try {
            return action.get();
        } catch (IllegalArgumentException wrong) {
            throw new InvalidConfigurationPropertyValueException(property, value, wrong.getMessage());
        }
    }

    private static InvalidConfigurationPropertyValueException invalid(String property, Object value, String reason) {
        return new InvalidConfigurationPropertyValueException(property, value, reason);
    }
}

package io.kvcache.server;

import io.kvcache.server.MaintenanceScheduler.FileReloader;
import io.kvcache.server.access.PasswordAuthenticator;
import io.kvcache.server.access.ReloadableTls;
import io.kvcache.server.cluster.ClusterPreflight;
import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.MemoryBudget;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.config.TrustDomainConfig;
import io.kvcache.server.remote.RemoteEndpoint;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.directory.DiskDirectoryException;
import io.kvcache.tiers.directory.FileErrorMessage;
import io.kvcache.tiers.os.SystemClock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Looks at the settings, files and folders that a server would use, and changes nothing: a server may be using them.
public final class ServerPreflight {

    private ServerPreflight() {}

    /// Returns the problems of the files that these settings name: passwords, secrets, salts, certificates. Never
    /// shows their contents.
    public static List<String> findFileProblems(ServerConfig config) {
        List<TenantConfig> tenants = config.access().tenants();
        List<String> wrong = new ArrayList<>();
        collectTenantProblems(
                wrong,
                tenants,
                some -> PasswordAuthenticator.open(some, SystemClock.INSTANCE).close());
        collectTenantProblems(wrong, tenants, TenantKeyspaces.KeyOwnershipLoader::open);
        collectTenantProblems(wrong, tenants, some -> RemoteEndpoint.checkSecrets(config.transport(), some));
        Stream.concat(
                        Stream.of(config.transport()).map(TransportConfig::tls),
                        config.access().listeners().stream().map(ListenerConfig::tls))
                .filter(Objects::nonNull)
                .forEach(tls -> collectProblem(wrong, () -> ReloadableTls.open(tls)));
        collectProblem(wrong, () -> ClusterPreflight.checkFiles(config));
        return wrong;
    }

    /// Returns what is allowed in these settings and may not be meant: what may keep the server from
    /// meeting the others of its cluster, and pages that no client sees.
    public static List<String> findWarnings(ServerConfig config) {
        List<String> warnings = new ArrayList<>(ClusterPreflight.findWarnings(config));
        boolean administrators = config.access().tenants().stream().anyMatch(TenantConfig::admin);
        config.access().listeners().stream()
                .filter(listen -> listen.auth().auth() && listen.protocols().contains(ListenProtocol.PAGES))
                .filter(_ -> !administrators)
                .forEach(listen -> warnings.add(listen.path()
                        + ".protocols has pages and its clients authenticate, but no tenant has admin: true, so metrics"
                        + " and the other pages that tell of all tenants are refused there"));
        return warnings;
    }

    /// Reads the files of tenants.
    private interface TenantFiles {
        void read(List<TenantConfig> tenants) throws IOException;
    }

    /// Reads the files of each tenant, so that each mistake is named, then those of all together.
    private static void collectTenantProblems(List<String> wrong, List<TenantConfig> tenants, TenantFiles files) {
        int before = wrong.size();
        tenants.forEach(tenant -> collectProblem(wrong, () -> files.read(List.of(tenant))));
        if (wrong.size() == before) {
            collectProblem(wrong, () -> files.read(tenants));
        }
    }

    private static void collectProblem(List<String> wrong, FileReloader.ReloadAction reading) {
        try {
            reading.run();
        } catch (IOException unusable) {
            wrong.add(String.valueOf(unusable.getMessage()));
        }
    }

    /// Returns the memory that a server with these settings will use, inside and outside this JVM's heap.
    public static MemoryBudget memoryBudget(ServerConfig config) {
        return MemoryBudget.of(
                config.memory().hostBytes() + config.access().domainBytes(), StoreFactory.reservedBytes(config));
    }

    /// Returns the problems of the directories that these settings name, for disks and shared memory.
    public static List<String> findStorageProblems(ServerConfig config) {
        List<String> wrong = new ArrayList<>();
        for (DiskConfig disk : config.disks().disks()) {
            try {
                DiskDirectory.checkUsable(disk.directory(), disk.bytes(), disk.onIncompatible());
            } catch (DiskDirectoryException refused) {
                wrong.add(disk.name() + ": " + refused.getMessage());
            }
        }
        try {
            DiskDirectory.requireApart(
                    config.disks().disks().stream().map(DiskConfig::directory).toList());
        } catch (DiskDirectoryException refused) {
            wrong.add("disks: " + refused.getMessage());
        }
        try {
            GpuDevices.requireAll(config.withAutoResolved(_ -> true));
        } catch (IllegalStateException unusable) {
            wrong.add(String.valueOf(unusable.getMessage()));
        }
        Path trace = config.trace().file();
        if (trace != null) {
            try {
                requireTraceApart(config);
                TraceCapture.checkUsable(trace);
            } catch (IOException unusable) {
                wrong.add(String.valueOf(unusable.getMessage()));
            }
        }
        long bytes = config.memory().hostBytes();
        Path shared = config.transport().isSharedMemoryExplicit()
                ? config.transport().sharedMemoryDirectory(config.access().tenants())
                : null;
        checkSharedMemory(wrong, "transport.shared_memory", existingParent(shared), shared, bytes);
        for (TrustDomainConfig domain : config.access().domains()) {
            String name = "domain " + domain.name() + ": shared_memory";
            checkSharedMemory(
                    wrong,
                    name,
                    existingParent(domain.sharedMemoryDirectory()),
                    domain.sharedMemoryDirectory(),
                    domain.hostBytes());
        }
        return wrong;
    }

    /// Checks that the trace is not to lie in the directory of a disk, which could not be opened again then.
    ///
    /// @throws IOException that names the setting, the file and the directory
    static void requireTraceApart(ServerConfig config) throws IOException {
        Path trace = config.trace().file();
        for (DiskConfig disk : config.disks().disks()) {
            if (trace != null && DiskDirectory.isWithin(trace, disk.directory())) {
                throw new IOException("trace.out is " + trace + ", in the directory of " + disk.name() + ", "
                        + disk.directory() + ", which may hold nothing else; name a file elsewhere");
            }
        }
    }

    /// Returns the directories that a server with these settings would make, which may be a typing error in a name.
    public static List<String> findMissingDirectories(ServerConfig config) {
        return config.disks().disks().stream()
                .filter(disk -> !Files.exists(disk.directory()))
                .map(disk -> disk.name() + ".directory is " + disk.directory()
                        + ", which does not exist; serve makes it, below "
                        + DiskDirectory.nearestExisting(disk.directory().toAbsolutePath()))
                .toList();
    }

    private static @Nullable Path existingParent(@Nullable Path folder) {
        return folder == null ? null : folder.getParent();
    }

    /// @param root where the memory is to lie
    /// @param own the file or folder for it there, which may hold it already
    private static void checkSharedMemory(
            List<String> wrong, String setting, @Nullable Path root, @Nullable Path own, long bytes) {
        if (root == null || own == null) {
            return;
        }
        try {
            if (!Files.isDirectory(root) || !Files.isWritable(root)) {
                wrong.add(setting + ": " + root + " is not a directory that this user can write to");
                return;
            }
            long room = Files.getFileStore(root).getUsableSpace() + existingBytes(own);
            if (room < bytes) {
                wrong.add(setting + ": " + root + " has room for " + room + " bytes; it is to hold " + bytes);
            }
        } catch (IOException | UncheckedIOException failure) {
            wrong.add(setting + ": " + own + " cannot be looked at: " + FileErrorMessage.of(failure, own.toString()));
        }
    }

    /// Returns the bytes of files that a killed server left there, which the next server replaces, or that a
    /// running server uses.
    private static long existingBytes(Path own) throws IOException {
        if (!Files.exists(own)) {
            return 0;
        }
        try (Stream<Path> files = Files.walk(own)) {
            return files.filter(Files::isRegularFile)
                    .mapToLong(ServerPreflight::bytes)
                    .sum();
        }
    }

    private static long bytes(Path file) {
        try {
            return Files.size(file);
        } catch (IOException gone) {
            return 0; // removed meanwhile
        }
    }
}

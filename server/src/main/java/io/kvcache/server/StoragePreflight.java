package io.kvcache.server;

import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.TrustDomainConfig;
import io.kvcache.server.trace.TraceCapture;
import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.directory.DiskDirectoryException;
import io.kvcache.tiers.directory.FileErrorMessage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Looks at the folders that a server would use, and changes nothing: a server may be using them.
final class StoragePreflight {

    private StoragePreflight() {}

    /// Returns the problems that would keep a server with these settings from starting; empty when there are none.
    static List<String> findProblems(ServerConfig config) {
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

    /// Returns what a server with these settings would make, which may be a typing error in a name.
    static List<String> findMissingDirectories(ServerConfig config) {
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
                    .mapToLong(StoragePreflight::bytes)
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

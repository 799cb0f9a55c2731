package io.kvcache.server.memory;

import io.kvcache.server.config.HostResources;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// The most memory that this process may have: the machine's, or less in a control group.
///
/// In version 2 of control groups the line `0::/a/b` of `/proc/self/cgroup` names the group, and each of
/// `/sys/fs/cgroup/a/b/memory.max`, `a/memory.max`, `memory.max` limits it; in version 1 the line `7:memory:/a/b`, and
/// `memory.limit_in_bytes` below `/sys/fs/cgroup/memory`. Within a container the group may be seen as the root, and the
/// named folder may be missing: then the root's file counts.
///
/// @param source the file that says so, or `the machine`
public record CgroupMemoryLimit(long bytes, String source) {

    /// The limit here.
    public static CgroupMemoryLimit detect() {
        return of(Path.of("/"), HostResources.detect().memoryBytes());
    }

    /// @param root of the file system
    /// @param machineBytes when no group has less
    static CgroupMemoryLimit of(Path root, long machineBytes) {
        CgroupMemoryLimit least = new CgroupMemoryLimit(machineBytes, "the machine");
        for (String line : lines(root.resolve("proc/self/cgroup"))) {
            String[] parts = line.split(":", 3);
            if (parts.length == 3 && parts[1].isEmpty()) {
                least = least.lowerOf(root.resolve("sys/fs/cgroup"), parts[2], "memory.max");
            } else if (parts.length == 3 && List.of(parts[1].split(",", -1)).contains("memory")) {
                least = least.lowerOf(root.resolve("sys/fs/cgroup/memory"), parts[2], "memory.limit_in_bytes");
            }
        }
        return least;
    }

    private CgroupMemoryLimit lowerOf(Path top, String group, String file) {
        CgroupMemoryLimit least = this;
        @Nullable
        Path at = top.resolve(group.substring(Math.min(1, group.length()))).normalize();
        while (at != null && at.startsWith(top)) {
            long bytes = bytes(at.resolve(file));
            if (bytes < least.bytes) {
                least = new CgroupMemoryLimit(bytes, at.resolve(file).toString());
            }
            at = at.getParent();
        }
        return least;
    }

    /// What a file says; everything when it says `max`, or nothing.
    private static long bytes(Path file) {
        List<String> lines = lines(file);
        try {
            return lines.isEmpty()
                    ? Long.MAX_VALUE
                    : Long.parseLong(lines.getFirst().strip());
        } catch (NumberFormatException word) {
            return Long.MAX_VALUE;
        }
    }

    private static List<String> lines(Path file) {
        try {
            return Files.readAllLines(file);
        } catch (IOException missing) {
            return List.of();
        }
    }
}

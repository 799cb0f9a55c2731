package io.kvcache.server.config;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// The most memory that a server will use, part by part.
///
/// @param heapBytes the JVM's heap
/// @param directBytes buffers of the network
/// @param valueBytes host memory for values
/// @param recordBytes what the store knows of them
public record MemoryBudget(long heapBytes, long directBytes, long valueBytes, long recordBytes) {

    /// A server may use this part of the limit. The rest is for the JVM's code, its threads, and the page cache.
    private static final int MAX_PERCENT = 90;

    private static final double GIB = 1L << 30;

    /// The budget of this JVM with a store.
    ///
    /// @param storeBytes as the store will reserve, values and records
    public static MemoryBudget of(long valueBytes, long storeBytes) {
        long heap = Runtime.getRuntime().maxMemory();
        long direct = Long.parseLong(ManagementFactory.getPlatformMXBean(HotSpotDiagnosticMXBean.class)
                .getVMOption("MaxDirectMemorySize")
                .getValue());
        return new MemoryBudget(heap, direct == 0 ? heap : direct, valueBytes, storeBytes - valueBytes);
    }

    /// All of it.
    public long totalBytes() {
        return heapBytes + directBytes + valueBytes + recordBytes;
    }

    /// One line that says what goes where.
    public String describe(CgroupMemoryLimit limit) {
        return String.format(
                Locale.ROOT,
                "memory: heap %s + direct %s + values %s + records %s = %s, %d %% of the %s that %s allows",
                gib(heapBytes),
                gib(directBytes),
                gib(valueBytes),
                gib(recordBytes),
                gib(totalBytes()),
                Math.round(100.0 * totalBytes() / limit.bytes()),
                gib(limit.bytes()),
                limit.source());
    }

    /// Refuses what is too much.
    ///
    /// @throws IllegalStateException that says what to do
    public void requireWithin(CgroupMemoryLimit limit) {
        long most = limit.bytes() / 100 * MAX_PERCENT;
        if (totalBytes() <= most) {
            return;
        }
        long values = most - heapBytes - directBytes - recordBytes;
        boolean records = recordBytes > most - heapBytes - directBytes;
        throw new IllegalStateException(describe(limit) + ". It takes up to " + MAX_PERCENT + " %, " + gib(most) + ": "
                + (values > 0 ? "set memory.host_bytes to " + (values >> 20) + "MiB or less, " : "")
                + (records ? "give disks and GPUs fewer bytes, each of which takes its part of the records, " : "")
                + "give the heap or direct memory less (KVCACHE_JAVA_OPTS='-Xmx1g -XX:MaxDirectMemorySize=1g'),"
                + " or raise the limit");
    }

    private static String gib(long bytes) {
        return String.format(Locale.ROOT, "%.2f GiB", bytes / GIB);
    }

    /// The most memory that this process may have: the machine's, or less in a control group.
    ///
    /// In version 2 of control groups the line `0::/a/b` of `/proc/self/cgroup` names the group, and each of
    /// `/sys/fs/cgroup/a/b/memory.max`, `a/memory.max`, `memory.max` limits it; in version 1 the line
    /// `7:memory:/a/b`, and `memory.limit_in_bytes` below `/sys/fs/cgroup/memory`. Within a container the
    /// group may be seen as the root, and the named folder may be missing: then the root's file counts.
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

        /// Returns the number in a file; `Long.MAX_VALUE` when it says `max`, or nothing.
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
}

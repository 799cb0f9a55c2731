package io.kvcache.server.memory;

import com.sun.management.HotSpotDiagnosticMXBean;
import java.lang.management.ManagementFactory;
import java.util.Locale;

/// What a server will take at the most, part by part.
///
/// @param heapBytes the JVM's heap
/// @param directBytes buffers of the network
/// @param valueBytes host memory for values
/// @param recordBytes what the store knows of them
public record MemoryBudget(long heapBytes, long directBytes, long valueBytes, long recordBytes) {

    /// Of the limit; the rest is for the JVM's code, its threads, and the page cache.
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
                + (records ? "give disks fewer bytes, each of which takes its part of the records, " : "")
                + "give the heap or direct memory less (KVCACHE_JAVA_OPTS='-Xmx1g -XX:MaxDirectMemorySize=1g'),"
                + " or raise the limit");
    }

    private static String gib(long bytes) {
        return String.format(Locale.ROOT, "%.2f GiB", bytes / GIB);
    }
}

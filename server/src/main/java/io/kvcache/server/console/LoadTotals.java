package io.kvcache.server.console;

import io.kvcache.core.CacheStats;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.stats.DiskTierStats.LiveUsage;
import io.kvcache.core.stats.TierTransferStats;
import io.kvcache.core.stats.TierTransferStats.Latency;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.KeyspaceStats;
import io.kvcache.server.metrics.RequestLatencies;
import io.kvcache.server.miss.MissLog.Reason;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// The counters of the load since the start, of the whole server or of one tenant, and its state at a moment.
///
/// @param nanos when they were read
/// @param hits blocks and values that look-ups found
/// @param diskHits of these, from a disk
/// @param deviceHits of these, from the memory of an engine's own GPU
/// @param misses blocks and values that look-ups did not find
/// @param tokensSaved tokens of blocks, and of LMCache's chunks, that were found
/// @param memoryBytes in host memory; of a tenant what it has stored, in any tier
/// @param memoryCapacityBytes of host memory; of a tenant its quota, 0 without one
/// @param disk null for a tenant
/// @param latencyCounts requests by how long they took; empty for a tenant
/// @param missReasons why look-ups found nothing: values, and requests for blocks that ended early
@SuppressWarnings("ArrayRecordComponent") // never compared
record LoadTotals(
        long nanos,
        long hits,
        long diskHits,
        long deviceHits,
        long misses,
        long tokensSaved,
        long memoryBytes,
        long memoryCapacityBytes,
        @Nullable Disk disk,
        long[] latencyCounts,
        long evicted,
        int connections,
        Map<Reason, Long> missReasons) {

    /// The disks together.
    ///
    /// @param budgetSpent largest share of a day's write budget; null without one
    /// @param readBytes of blocks and values, in whole or in part
    /// @param readCounts reads by how long they took
    /// @param writeCounts writes by how long they took
    @SuppressWarnings("ArrayRecordComponent") // never compared
    record Disk(
            long bytes,
            long capacityBytes,
            long writtenBytes,
            @Nullable Double budgetSpent,
            long readBytes,
            long[] readCounts,
            long[] writeCounts) {

        /// Returns what was read and written since.
        Disk since(Disk before) {
            return new Disk(
                    bytes,
                    capacityBytes,
                    Math.max(0, writtenBytes - before.writtenBytes),
                    budgetSpent,
                    Math.max(0, readBytes - before.readBytes),
                    difference(before.readCounts, readCounts),
                    difference(before.writeCounts, writeCounts));
        }
    }

    /// The counters of the whole server.
    static LoadTotals ofServer(ConsoleSources sources, CacheStats stats) {
        Sum sum = new Sum();
        stats.namespaces().forEach(sum::add);
        sources.keyspaces().values().forEach(keyspace -> sum.add(sources, keyspace));
        sources.misses().blockMisses(null).forEach(sum::add);
        return new LoadTotals(
                sources.clock().nanos(),
                sum.hits,
                sum.diskHits,
                sum.deviceHits,
                sum.misses,
                sum.tokens,
                stats.host().heldBytes(),
                stats.host().capacityBytes(),
                disk(sources),
                sources.latencies().mergedCounts(),
                stats.removals().evicted() + stats.removals().quota(),
                sources.connections().openCount(),
                sum.reasons);
    }

    /// The counters of one tenant.
    static LoadTotals ofTenant(ConsoleSources sources, CacheStats stats, String tenant) {
        Sum sum = new Sum();
        stats.namespaces().stream()
                .filter(each -> each.namespace().owner().equals(tenant))
                .forEach(sum::add);
        Keyspace keyspace = sources.keyspaces().get(tenant);
        if (keyspace != null) {
            sum.add(sources, keyspace);
        }
        sources.misses().blockMisses(tenant).forEach(sum::add);
        return new LoadTotals(
                sources.clock().nanos(),
                sum.hits,
                sum.diskHits,
                sum.deviceHits,
                sum.misses,
                sum.tokens,
                sum.storedBytes,
                keyspace == null ? 0 : keyspace.stats().usage().quotaBytes(),
                null,
                new long[0],
                sum.evicted,
                0,
                sum.reasons);
    }

    private static @Nullable Disk disk(ConsoleSources sources) {
        List<TierTransferStats> disks = sources.cache().diskStats();
        if (disks.isEmpty()) {
            return null;
        }
        List<LiveUsage> live = sources.cache().offloadStats().disks();
        return new Disk(
                live.stream().mapToLong(LiveUsage::bytes).sum(),
                disks.stream().mapToLong(each -> each.tier().capacityBytes()).sum(),
                disks.stream().mapToLong(each -> each.tier().allBytesWritten()).sum(),
                sources.hasWriteBudget()
                        ? disks.stream()
                                .mapToDouble(TierTransferStats::budgetSpent)
                                .max()
                                .orElse(0)
                        : null,
                disks.stream()
                        .mapToLong(each -> each.loadedBytes() + each.partBytes())
                        .sum(),
                counts(disks, TierTransferStats::readLatency),
                counts(disks, TierTransferStats::writeLatency));
    }

    private static long[] counts(List<TierTransferStats> disks, Function<TierTransferStats, Latency> latency) {
        long[] counts = new long[Latency.BOUNDS_MICROS.size() + 1];
        disks.forEach(disk -> Arrays.setAll(
                counts, i -> counts[i] + latency.apply(disk).within().get(i)));
        return counts;
    }

    private static long[] difference(long[] before, long[] now) {
        long[] counts = new long[now.length];
        Arrays.setAll(counts, i -> Math.max(0, now[i] - before[i]));
        return counts;
    }

    /// Adds up namespaces and keyspaces.
    private static final class Sum {

        private long hits;
        private long diskHits;
        private long deviceHits;
        private long misses;
        private long tokens;
        private long storedBytes;
        private long blockBytes;
        private long evicted;
        private final Map<Reason, Long> reasons = new EnumMap<>(Reason.class);

        /// Adds a namespace's blocks; values are in the keyspaces' counters.
        void add(NamespaceStats stats) {
            hits += stats.blocksFound();
            diskHits += stats.blocksLoaded();
            deviceHits += stats.blocksFromDevice();
            misses += Math.max(0, stats.blocksRequested() - stats.blocksFound());
            boolean blocks = !stats.namespace().parts().isEmpty();
            tokens += blocks ? stats.blocksFound() * stats.namespace().blockTokens() : 0;
            blockBytes += blocks ? stats.liveBytes() : 0;
        }

        void add(ConsoleSources sources, Keyspace keyspace) {
            KeyspaceStats stats = keyspace.stats();
            KeyspaceStats.Reads reads = stats.reads();
            hits += reads.hits();
            diskHits += stats.fromDisk();
            misses += reads.misses();
            tokens += keyspace.chunksRead() * sources.chunkTokens();
            evicted += stats.evicted() + stats.usage().evicted();
            // A quota counts blocks too; without one only values are counted, and the store knows the rest.
            storedBytes += stats.usage().usedBytes() + (stats.usage().quotaBytes() > 0 ? 0 : blockBytes);
            reads.missed().forEach(this::add);
        }

        void add(Reason reason, long count) {
            reasons.merge(reason, count, Long::sum);
        }
    }

    /// Returns the sample of the time since earlier totals.
    ///
    /// @param atSeconds of the clock on the wall, by now
    LoadSample since(LoadTotals before, long atSeconds) {
        long[] latencies = difference(before.latencyCounts, latencyCounts);
        boolean server = latencies.length > 0;
        long measured = Arrays.stream(latencies).sum();
        Disk disks = disk;
        Disk disksBefore = before.disk;
        Disk moved = disks == null || disksBefore == null ? null : disks.since(disksBefore);
        return new LoadSample(
                atSeconds,
                Math.round((nanos - before.nanos) / 1e8) / 10.0,
                hits - diskHits - deviceHits - before.hits + before.diskHits + before.deviceHits,
                diskHits - before.diskHits,
                deviceHits - before.deviceHits,
                misses - before.misses,
                tokensSaved - before.tokensSaved,
                memoryBytes,
                memoryCapacityBytes,
                disks == null ? null : disks.bytes,
                disks == null ? null : disks.capacityBytes,
                moved == null ? null : moved.writtenBytes,
                disks == null ? null : disks.budgetSpent,
                moved == null ? null : Arrays.stream(moved.readCounts).sum(),
                moved == null ? null : moved.readBytes,
                moved == null ? null : RequestLatencies.quantileMicros(moved.readCounts, 0.99),
                moved == null ? null : Arrays.stream(moved.writeCounts).sum(),
                moved == null ? null : RequestLatencies.quantileMicros(moved.writeCounts, 0.99),
                server ? measured : null,
                measured > 0 ? RequestLatencies.quantileMicros(latencies, 0.5) : null,
                measured > 0 ? RequestLatencies.quantileMicros(latencies, 0.99) : null,
                evicted - before.evicted,
                server ? connections : null,
                missesBetween(before.missReasons, missReasons));
    }

    /// The load of an interval, of the whole server or of one tenant, as JSON has it. Null is what is not known
    /// of a tenant, or of a server without disks.
    ///
    /// @param at end of the interval, in seconds since 1970
    /// @param seconds that it took
    /// @param memoryHits blocks and values that look-ups found in host memory
    /// @param diskHits those that they found on a disk
    /// @param deviceHits blocks that engines took from the memory of their own GPU
    /// @param misses blocks and values that look-ups did not find
    /// @param tokensSaved tokens of blocks, and of LMCache's chunks, that were found
    /// @param memoryBytes at its end; of a tenant what it has stored, in any tier
    /// @param memoryCapacityBytes of a tenant its quota, 0 without one
    /// @param diskBytes alive at its end
    /// @param diskWrittenBytes in the interval
    /// @param diskBudgetSpent share of a day's write budget, of the disk that has least left
    /// @param diskReads blocks and values that came from disks, in whole or in part
    /// @param diskReadP99Micros that 99 % of these did not exceed
    /// @param requests also of other JVMs
    /// @param p50Micros that half of the requests did not exceed, but for those of other JVMs; null without any
    /// @param evicted of a tenant values alone
    /// @param missReasons look-ups that found nothing, and requests for blocks that ended early, by reason
    record LoadSample(
            long at,
            double seconds,
            long memoryHits,
            long diskHits,
            long deviceHits,
            long misses,
            long tokensSaved,
            long memoryBytes,
            long memoryCapacityBytes,
            @Nullable Long diskBytes,
            @Nullable Long diskCapacityBytes,
            @Nullable Long diskWrittenBytes,
            @Nullable Double diskBudgetSpent,
            @Nullable Long diskReads,
            @Nullable Long diskReadBytes,
            @Nullable Long diskReadP99Micros,
            @Nullable Long diskWrites,
            @Nullable Long diskWriteP99Micros,
            @Nullable Long requests,
            @Nullable Long p50Micros,
            @Nullable Long p99Micros,
            long evicted,
            @Nullable Integer connections,
            Map<Reason, Long> missReasons) {}

    /// Returns what was missed for each reason since.
    static Map<Reason, Long> missesBetween(Map<Reason, Long> before, Map<Reason, Long> now) {
        Map<Reason, Long> misses = new EnumMap<>(Reason.class);
        for (Reason reason : Reason.values()) {
            misses.put(reason, now.getOrDefault(reason, 0L) - before.getOrDefault(reason, 0L));
        }
        return misses;
    }
}

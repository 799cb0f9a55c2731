package io.kvcache.bench.sim;

import io.kvcache.core.CacheStats;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.store.TierPort.DiskTierStats;
import io.kvcache.core.tier.TierStats;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.TierTransferStats;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.StringJoiner;
import java.util.TreeMap;

/// The end state of a run, or of one life of its store.
final class SimEndState {

    private SimEndState() {}

    /// The end state as values without names of classes or fields, so that a recorded one outlives a rename: the
    /// same for the same seed.
    static String describe(SimStore store) {
        TieredKvCache cache = store.current().cache();
        TreeMap<String, Boolean> keys = new TreeMap<>();
        DurabilityOracle.knownKeys(store.current().store())
                .forEach((key, onDisk) ->
                        keys.put(String.format(Locale.ROOT, "%016x%016x", key.hi(), key.lo()), onDisk));
        StringJoiner text = new StringJoiner("\n");
        text.add("cache " + values(cache.stats()));
        text.add("writes " + values(cache.offloadStats()));
        cache.diskStats().forEach(disk -> text.add("disk " + values(disk)));
        text.add(keys.toString());
        text.add(cache.events().nextSequence() + " events at " + store.clock().nanos());
        return text.toString();
    }

    private static List<Object> values(CacheStats stats) {
        List<Object> values = new ArrayList<>(List.of(
                stats.host().heldBytes(),
                stats.host().slabs(),
                stats.host().slabMoves(),
                stats.records().live(),
                stats.puts().reserved(),
                stats.puts().present(),
                stats.puts().busy(),
                stats.puts().noParent(),
                stats.puts().noRoom(),
                stats.puts().abandoned(),
                stats.puts().foreign(),
                stats.puts().declined(),
                stats.removals().evicted(),
                stats.removals().dropped(),
                stats.removals().replaced(),
                stats.openTables()));
        for (NamespaceStats space : stats.namespaces()) {
            values.addAll(List.of(
                    space.blocksRequested(),
                    space.blocksFound(),
                    space.blocksLoaded(),
                    space.objectsRequested(),
                    space.objectsFound(),
                    space.live(),
                    space.liveBytes()));
        }
        return values;
    }

    private static List<Object> values(DiskTierStats stats) {
        List<Object> values = new ArrayList<>(List.of(
                stats.admitted(),
                stats.written(),
                stats.notWritten(),
                stats.notYet(),
                stats.tooLarge(),
                stats.queueFull(),
                stats.sacrificed(),
                stats.evictedUnwritten(),
                stats.waitingBytes(),
                stats.writing(),
                stats.restored(),
                stats.superseded(),
                stats.orphans(),
                stats.withoutRecord()));
        stats.disks().forEach(disk -> values.addAll(List.of(disk.blocks(), disk.bytes(), disk.limitBytes())));
        return values;
    }

    private static List<Object> values(TierTransferStats disk) {
        TierStats tier = disk.tier();
        return List.of(
                disk.state(),
                disk.opened(),
                disk.loaded(),
                disk.loadedBytes(),
                disk.readFailures(),
                disk.cancelled(),
                disk.readLatency().count(),
                disk.readLatency().sumMicros(),
                disk.writeLatency().count(),
                disk.writeLatency().sumMicros(),
                tier.blocksWritten(),
                tier.blockBytesWritten(),
                tier.writesFailed(),
                tier.allBytesWritten(),
                tier.readsGood(),
                tier.readErrors(),
                tier.checksumErrors(),
                tier.regionsReclaimed(),
                tier.blocksKept(),
                tier.blocksRecovered(),
                tier.coding().storedBytes(),
                tier.coding().decodedBytes());
    }

    /// Counts the events of a life.
    static void countCoverage(TieredKvCache cache, CoverageCounters rare) {
        DiskTierStats offload = cache.offloadStats();
        rare.countIf("write in vain", offload.notWritten() > 0);
        rare.countIf("write queue full", offload.queueFull() > 0);
        rare.countIf("sacrificed", offload.sacrificed() > 0);
        rare.countIf("restored", offload.restored() > 0);
        rare.countIf("superseded", offload.superseded() > 0);
        rare.countIf("orphans", offload.orphans() > 0);
        rare.countIf("more found than records", offload.withoutRecord() > 0);
        rare.countIf("slab moved", cache.stats().host().slabMoves() > 0);
        for (TierTransferStats disk : cache.diskStats()) {
            rare.countIf("loaded", disk.loaded() > 0);
            rare.countIf("load cancelled", disk.cancelled() > 0);
            rare.countIf("read failed", disk.readFailures() > 0);
            rare.countIf("disk out and back", disk.opened() > 1);
            rare.countIf("reclaimed", disk.tier().regionsReclaimed() > 0);
            rare.countIf("coded", disk.tier().coding().blocks() > 0);
            rare.countIf("decoded", disk.tier().coding().decodedBytes() > 0);
            rare.countIf("kept at reclaim", disk.tier().blocksKept() > 0);
            rare.countIf("write failed", disk.tier().writesFailed() > 0);
        }
    }
}

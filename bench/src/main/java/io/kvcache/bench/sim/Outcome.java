package io.kvcache.bench.sim;

import io.kvcache.core.store.DiskSideStats;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.movement.MoverStats;
import java.util.TreeMap;

/// What a run, or one life of its store, ends with.
final class Outcome {

    private Outcome() {}

    /// Everything there is to tell, as text: the same for the same seed.
    static String state(SimStore store) {
        TieredKvCache cache = store.now().cache();
        TreeMap<String, Boolean> keys = new TreeMap<>();
        Promises.known(store.now().store()).forEach((key, onDisk) -> keys.put(key.toString(), onDisk));
        return cache.stats() + "\n" + cache.offloadStats() + "\n" + cache.diskStats() + "\n" + keys + "\n"
                + cache.events().nextSequence() + " events at " + store.clock().nanos();
    }

    /// What a life has seen.
    static void count(TieredKvCache cache, RareCounts rare) {
        DiskSideStats offload = cache.offloadStats();
        rare.countIf("write in vain", offload.notWritten() > 0);
        rare.countIf("write queue full", offload.queueFull() > 0);
        rare.countIf("sacrificed", offload.sacrificed() > 0);
        rare.countIf("restored", offload.restored() > 0);
        rare.countIf("superseded", offload.superseded() > 0);
        rare.countIf("orphans", offload.orphans() > 0);
        rare.countIf("more found than records", offload.withoutRecord() > 0);
        rare.countIf("slab moved", cache.stats().host().slabMoves() > 0);
        for (MoverStats disk : cache.diskStats()) {
            rare.countIf("loaded", disk.loaded() > 0);
            rare.countIf("load cancelled", disk.cancelled() > 0);
            rare.countIf("read failed", disk.readFailures() > 0);
            rare.countIf("disk out and back", disk.opened() > 1);
            rare.countIf("reclaimed", disk.tier().regionsReclaimed() > 0);
            rare.countIf("kept at reclaim", disk.tier().blocksKept() > 0);
            rare.countIf("write failed", disk.tier().writesFailed() > 0);
        }
    }
}

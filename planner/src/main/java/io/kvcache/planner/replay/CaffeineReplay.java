package io.kvcache.planner.replay;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.planner.replay.HitCounter.HitTotals;

/// Replays against W-TinyLFU as Caffeine implements it, a base line from the world of independent keys.
///
/// It knows nothing of trees: it may keep a block without the blocks before it, which then cannot be a hit, since
/// hits are counted from the start of the prompt. Nor does it know pins.
///
/// Source: Einziger, Friedman, Manes: "TinyLFU: a highly efficient cache admission policy", ACM TOS 2017.
public record CaffeineReplay() implements SimulatedCache {

    @Override
    public String commandName() {
        return "w-tinylfu";
    }

    @Override
    public String title() {
        return "W-TinyLFU by Caffeine (not leaf-closed)";
    }

    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        Cache<Integer, Boolean> cache = Caffeine.newBuilder()
                .maximumSize(blocks)
                .executor(Runnable::run)
                .build();
        for (int request = 0; request < forest.requestCount(); request++) {
            int hits = 0;
            while (hits < forest.storedBlocks(request) && cache.getIfPresent(forest.node(request, hits)) != null) {
                hits++;
            }
            counter.onRequest(request, hits);
            for (int i = hits; i < forest.storedBlocks(request); i++) {
                cache.put(forest.node(request, i), true);
            }
            counter.onServed(request, forest.storedBlocks(request) - hits, (int) cache.estimatedSize());
        }
        return counter.totals();
    }
}

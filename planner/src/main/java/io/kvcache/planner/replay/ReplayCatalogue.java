package io.kvcache.planner.replay;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.ScoredReplay.CostAwareReplay;
import io.kvcache.planner.replay.ScoredReplay.MarconiReplay;
import io.kvcache.planner.replay.ScoredReplay.PensieveReplay;
import io.kvcache.planner.replay.ScoredReplay.PgdsfReplay;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/// Everything a trace can be replayed against, by its command-line name.
public final class ReplayCatalogue {

    private static final List<SimulatedCache> ALL = Stream.<SimulatedCache>concat(
                    EvictionPolicies.all().stream().map(PolicyReplay::new),
                    Stream.of(
                            new CaffeineReplay(),
                            new VllmQueueReplay(),
                            new MooncakeReplay(),
                            new CostAwareReplay(),
                            new PgdsfReplay(),
                            new MarconiReplay(),
                            new PensieveReplay(),
                            new BeladyReplay(false),
                            new BeladyReplay(true)))
            .toList();

    private ReplayCatalogue() {}

    /// All of them: the store's policies first, then what others have, then the bounds.
    public static List<SimulatedCache> all() {
        return ALL;
    }

    /// The one with this name, if any.
    public static Optional<SimulatedCache> named(String name) {
        return ALL.stream().filter(replay -> replay.commandName().equals(name)).findFirst();
    }

    /// All names, for messages.
    public static String names() {
        return ALL.stream().map(SimulatedCache::commandName).collect(Collectors.joining(", "));
    }

    /// Replays against W-TinyLFU as Caffeine implements it, a base line from the world of independent keys.
    ///
    /// It knows nothing of trees: it may keep a block without the blocks before it, which then cannot be a
    /// hit, since hits are counted from the start of the prompt. Nor does it know pins.
    ///
    /// Source: Einziger, Friedman, Manes: "TinyLFU: a highly efficient cache admission policy", ACM TOS 2017.
    public record CaffeineReplay() implements SimulatedCache {

        @Override
        public String commandName() {
            return "w-tinylfu";
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
}

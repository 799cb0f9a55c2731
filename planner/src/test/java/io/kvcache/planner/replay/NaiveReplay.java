package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceRequest;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The replay convention word by word, with no thought for speed: a block is the list of ids from the start of its
/// prompt, the cache is a set of them, and every victim is found by looking at all.
final class NaiveReplay {

    /// Who goes first, as a comparator's smallest.
    enum VictimRule {
        LRU,
        BELADY,
        BELADY_BYPASS
    }

    private final VictimRule rule;
    private final int blocks;
    private final Trace trace;
    private final Set<List<Long>> resident = new HashSet<>();
    private final Map<List<Long>, Integer> lastUse = new HashMap<>();
    private final Map<List<Long>, List<Integer>> uses = new HashMap<>();
    private long accesses;
    private long hits;

    NaiveReplay(VictimRule rule, Trace trace, int blocks) {
        this.rule = rule;
        this.trace = trace;
        this.blocks = blocks;
        for (int request = 0; request < trace.requests().size(); request++) {
            for (List<Long> block : path(trace.requests().get(request))) {
                uses.computeIfAbsent(block, any -> new ArrayList<>()).add(request);
            }
        }
    }

    /// Hits and accesses, whatever the tokens.
    HitTotals run() {
        for (int request = 0; request < trace.requests().size(); request++) {
            serve(request, path(trace.requests().get(request)));
        }
        return new HitTotals(accesses, hits, 0, 0, 0);
    }

    private void serve(int request, List<List<Long>> path) {
        accesses += path.size();
        int found = 0;
        while (found < path.size() && resident.contains(path.get(found))) {
            found++;
        }
        hits += found;
        path.forEach(block -> lastUse.put(block, request));
        Set<List<Long>> pinned = Set.copyOf(path);
        for (List<Long> block : path.subList(found, path.size())) {
            if (resident.size() == blocks) {
                List<Long> victim = victim(pinned, request);
                if (victim == null
                        || (rule == VictimRule.BELADY_BYPASS && nextUse(block, request) >= nextUse(victim, request))) {
                    return;
                }
                resident.remove(victim);
            }
            resident.add(block);
        }
    }

    private @Nullable List<Long> victim(Set<List<Long>> pinned, int request) {
        Comparator<List<Long>> byUse = rule == VictimRule.LRU
                ? Comparator.comparingInt(block -> Objects.requireNonNull(lastUse.get(block)))
                : Comparator.comparingInt((List<Long> block) -> nextUse(block, request))
                        .reversed();
        Set<List<Long>> parents = new HashSet<>();
        resident.forEach(block -> parents.add(block.subList(0, block.size() - 1)));
        return resident.stream()
                .filter(block -> !pinned.contains(block) && !parents.contains(block))
                .min(byUse.thenComparing(List::size, Comparator.reverseOrder()))
                .orElse(null);
    }

    private int nextUse(List<Long> block, int request) {
        return Objects.requireNonNull(uses.get(block)).stream()
                .filter(use -> use > request)
                .findFirst()
                .orElse(Integer.MAX_VALUE);
    }

    private static List<List<Long>> path(TraceRequest request) {
        List<Long> ids = new ArrayList<>();
        List<List<Long>> path = new ArrayList<>();
        for (long id : request.hashIds()) {
            ids.add(id);
            path.add(List.copyOf(ids));
        }
        return path;
    }
}

package io.kvcache.bench.lab;

import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/// Sends the requests of a trace to instances.
final class RequestRouter {

    /// Most instances: each is a bit of a word.
    static final int MAX_INSTANCES = 64;

    private static final double MIN_PREFIX_SHARE = 0.5;
    private static final double MAX_IMBALANCE = 1.2;
    private static final long HASH_MULTIPLIER = 0x9E3779B97F4A7C15L;

    private final Trace trace;
    private final int instances;
    /// Prompt tokens sent to each.
    private final long[] sent;

    private long longest;

    /// @param instances 1 to [#MAX_INSTANCES]
    RequestRouter(Trace trace, int instances) {
        this.trace = trace;
        this.instances = instances;
        sent = new long[instances];
    }

    /// What each instance gets to see; may be called once.
    List<Trace> split(RoutingPolicy routingPolicy, long seed) {
        int[] places = switch (routingPolicy) {
            case RANDOM ->
                new Random(seed).ints(trace.requests().size(), 0, instances).toArray();
            case SESSION -> bySession(seed);
            case PREFIX -> byPrefix();
        };
        List<List<TraceRequest>> seen = new ArrayList<>();
        for (int i = 0; i < instances; i++) {
            seen.add(new ArrayList<>());
        }
        for (int i = 0; i < places.length; i++) {
            seen.get(places[i]).add(trace.requests().get(i));
        }
        return seen.stream()
                .map(requests -> new Trace(trace.name(), trace.blockTokens(), requests))
                .toList();
    }

    private int[] bySession(long seed) {
        long[] sessions = SessionInference.of(trace);
        int[] places = new int[sessions.length];
        for (int i = 0; i < places.length; i++) {
            long mixed = ((seed * HASH_MULTIPLIER) ^ sessions[i]) * HASH_MULTIPLIER;
            places[i] = (int) Long.remainderUnsigned(mixed ^ (mixed >>> 32), instances);
        }
        return places;
    }

    private int[] byPrefix() {
        PrefixForest forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        long[] holders = new long[forest.nodeCount()];
        int[] places = new int[forest.requestCount()];
        for (int request = 0; request < places.length; request++) {
            int tokens = trace.requests().get(request).inputTokens();
            longest = Math.max(longest, tokens);
            int place = place(forest, holders, request);
            places[request] = place;
            sent[place] += tokens;
            for (int i = 0; i < forest.storedBlocks(request); i++) {
                holders[forest.node(request, i)] |= 1L << place;
            }
        }
        return places;
    }

    private int place(PrefixForest forest, long[] holders, int request) {
        int least = leastSent(-1L);
        int known = 0;
        long having = 0;
        while (known < forest.storedBlocks(request) && holders[forest.node(request, known)] != 0) {
            having = holders[forest.node(request, known++)];
        }
        if (having == 0 || known < MIN_PREFIX_SHARE * forest.storedBlocks(request)) {
            return least;
        }
        int chosen = leastSent(having);
        return sent[chosen] <= MAX_IMBALANCE * sent[least] + longest ? chosen : least;
    }

    /// Of those in the mask, the one that was sent the fewest tokens.
    private int leastSent(long mask) {
        int least = -1;
        for (int i = 0; i < instances; i++) {
            if ((mask & (1L << i)) != 0 && (least < 0 || sent[i] < sent[least])) {
                least = i;
            }
        }
        return least;
    }
}

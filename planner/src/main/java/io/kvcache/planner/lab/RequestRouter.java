package io.kvcache.planner.lab;

import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceRequest;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.Random;
import java.util.stream.Collectors;

/// Sends the requests of a trace to instances.
public final class RequestRouter {

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

    /// Returns the trace of each instance. Call it once.
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
        long[] sessions = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS).sessions();
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

    /// Returns the instance in the mask that was sent the fewest tokens.
    private int leastSent(long mask) {
        int least = -1;
        for (int i = 0; i < instances; i++) {
            if ((mask & (1L << i)) != 0 && (least < 0 || sent[i] < sent[least])) {
                least = i;
            }
        }
        return least;
    }

    /// How requests are spread over instances that each have a cache of their own.
    public enum RoutingPolicy {
        /// Anywhere.
        RANDOM,
        /// A session always to the same one.
        SESSION,
        /// To one that was sent the same prefix, if that is half the prompt or more and it has not been sent a
        /// fifth more tokens than the others; else to the one that was sent the fewest.
        PREFIX;

        /// The route of this name, if any.
        public static Optional<RoutingPolicy> named(String name) {
            return Arrays.stream(values())
                    .filter(routingPolicy -> routingPolicy.commandName().equals(name))
                    .findFirst();
        }

        /// All names, for messages.
        public static String names() {
            return Arrays.stream(values()).map(RoutingPolicy::commandName).collect(Collectors.joining(", "));
        }

        /// Name on command lines and in output.
        public String commandName() {
            return name().toLowerCase(Locale.ROOT);
        }
    }
}

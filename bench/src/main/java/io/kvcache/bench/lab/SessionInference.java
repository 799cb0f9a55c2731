package io.kvcache.bench.lab;

import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.PrefixForest;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceRequest;
import java.util.Arrays;

/// Which session each request of a trace is part of.
///
/// Where the trace says it, as it says. Else a request goes on with a session when the full blocks that
/// it has in common with earlier requests end where a prompt of that session ended, with a block that was
/// new then: it is that prompt and something more. All others begin a session, those with a shared system
/// prompt too.
final class SessionInference {

    private static final long NONE = TraceRequest.NO_SESSION;

    private SessionInference() {}

    static long[] of(Trace trace) {
        boolean said = trace.requests().stream().allMatch(request -> request.session() != NONE);
        return said
                ? trace.requests().stream().mapToLong(TraceRequest::session).toArray()
                : infer(new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS));
    }

    static long[] infer(PrefixForest forest) {
        long[] endOf = new long[forest.nodeCount()];
        Arrays.fill(endOf, NONE);
        boolean[] seen = new boolean[forest.nodeCount()];
        long[] sessions = new long[forest.requestCount()];
        for (int request = 0; request < sessions.length; request++) {
            int known = 0;
            while (known < forest.storedBlocks(request) && seen[forest.node(request, known)]) {
                known++;
            }
            long before = known == 0 ? NONE : endOf[forest.node(request, known - 1)];
            sessions[request] = before == NONE ? request : before;
            for (int i = known; i < forest.storedBlocks(request); i++) {
                seen[forest.node(request, i)] = true;
            }
            if (known < forest.storedBlocks(request)) {
                endOf[forest.node(request, forest.storedBlocks(request) - 1)] = sessions[request];
            }
        }
        return sessions;
    }
}

package io.kvcache.planner.replay;

import io.kvcache.planner.trace.TraceRequest;
import java.util.Arrays;

/// Finds the session of each request of a trace.
///
/// A trace that names sessions decides. Otherwise a request continues a session if it is a prompt of that session
/// and something more: the full blocks that it shares with earlier requests end where that prompt ended, with a
/// block that was new then. All others begin a session, those with a shared system prompt too.
public final class SessionInference {

    private static final long NONE = TraceRequest.NO_SESSION;

    private SessionInference() {}

    /// Returns the number of each request's session.
    public static long[] of(PrefixForest forest) {
        long[] named = forest.namedSessions();
        return Arrays.stream(named).noneMatch(session -> session == NONE) ? named : infer(forest);
    }

    /// Returns the numbers that the blocks alone say.
    public static long[] infer(PrefixForest forest) {
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

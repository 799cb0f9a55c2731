package io.kvcache.planner.replay;

import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceRequest;
import java.util.Arrays;
import java.util.List;

/// A trace as paths in a forest: nodes are (parent node, hash id), numbered in the order of their
/// appearance.
///
/// Built once for a trace and a rule, then shared by all replays, which keep their own state in arrays by
/// node number.
public final class PrefixForest {

    /// No node: the parent of a root.
    static final int NONE = -1;

    private final BlockCountingRule rule;
    private final int blockTokens;
    private final int[] parents;
    private final int[] depths;
    /// The requests' paths one after another; request r's begins at `starts[r]`.
    private final int[] path;

    private final int[] starts;
    private final int[] lookedUp;
    private final int[] inputTokens;
    private final long[] millis;
    private final long[] sessions;

    /// Builds the forest of the blocks that the rule stores.
    public PrefixForest(Trace trace, BlockCountingRule rule) {
        List<TraceRequest> requests = trace.requests();
        this.rule = rule;
        blockTokens = trace.blockTokens();
        starts = new int[requests.size() + 1];
        lookedUp = requests.stream()
                .mapToInt(request -> rule.lookupBlocks(request, blockTokens))
                .toArray();
        millis = requests.stream().mapToLong(TraceRequest::timestampMillis).toArray();
        sessions = requests.stream().mapToLong(TraceRequest::session).toArray();
        inputTokens = requests.stream().mapToInt(TraceRequest::inputTokens).toArray();
        for (int r = 0; r < requests.size(); r++) {
            starts[r + 1] = starts[r] + rule.storedBlocks(requests.get(r), blockTokens);
        }
        path = new int[starts[requests.size()]];
        NodeIndex index = new NodeIndex();
        for (int r = 0; r < requests.size(); r++) {
            long[] ids = requests.get(r).hashIds();
            int node = NONE;
            for (int i = 0; i < storedBlocks(r); i++) {
                node = index.numberOf(node, ids[i]);
                path[starts[r] + i] = node;
            }
        }
        parents = index.parents();
        depths = depths(parents);
    }

    private static int[] depths(int[] parents) {
        int[] depths = new int[parents.length];
        for (int node = 0; node < parents.length; node++) {
            depths[node] = parents[node] == NONE ? 0 : depths[parents[node]] + 1;
        }
        return depths;
    }

    /// The rule it was built by.
    public BlockCountingRule rule() {
        return rule;
    }

    /// Tokens of a block.
    public int blockTokens() {
        return blockTokens;
    }

    /// Number of nodes: what an unlimited cache would hold in the end.
    public int nodeCount() {
        return parents.length;
    }

    /// Number of requests.
    public int requestCount() {
        return lookedUp.length;
    }

    int parent(int node) {
        return parents[node];
    }

    int depth(int node) {
        return depths[node];
    }

    /// Blocks that a request puts into the cache, or finds there.
    public int storedBlocks(int request) {
        return starts[request + 1] - starts[request];
    }

    /// Node of one of a request's blocks.
    public int node(int request, int block) {
        return path[starts[request] + block];
    }

    /// Leading blocks of a request that can be hits.
    public int lookupBlocks(int request) {
        return lookedUp[request];
    }

    /// When a request arrived, in milliseconds from the start of the trace.
    long arrivalMillis(int request) {
        return millis[request];
    }

    /// The session of each request as the trace names it, or [TraceRequest#NO_SESSION].
    long[] namedSessions() {
        return sessions.clone();
    }

    int inputTokens(int request) {
        return inputTokens[request];
    }

    /// For each request and block, the next request that uses the same node, or `Integer.MAX_VALUE`.
    int[][] nextUses() {
        int[] next = new int[parents.length];
        Arrays.fill(next, Integer.MAX_VALUE);
        int[][] uses = new int[requestCount()][];
        for (int r = requestCount() - 1; r >= 0; r--) {
            uses[r] = new int[storedBlocks(r)];
            for (int i = 0; i < uses[r].length; i++) {
                uses[r][i] = next[node(r, i)];
                next[node(r, i)] = r;
            }
        }
        return uses;
    }

    /// Numbers the nodes (parent node, hash id) of a prefix tree in the order of their appearance.
    ///
    /// An open-addressed table of node numbers; a probe compares with the node's own parent and id. Boxed
    /// keys would take longer than the replay itself.
    private static final class NodeIndex {

        private static final long HASH_MULTIPLIER = 0x9E3779B97F4A7C15L;

        private int[] table = new int[1 << 10];
        private int[] parents = new int[1 << 9];
        private long[] ids = new long[1 << 9];
        private int count;

        NodeIndex() {
            Arrays.fill(table, -1);
        }

        int[] parents() {
            return Arrays.copyOf(parents, count);
        }

        /// The node's number; a new one when it was not seen before.
        int numberOf(int parent, long id) {
            int place = place(parent, id);
            if (table[place] < 0) {
                if (count == parents.length) {
                    grow();
                    place = place(parent, id);
                }
                parents[count] = parent;
                ids[count] = id;
                table[place] = count++;
            }
            return table[place];
        }

        private int place(int parent, long id) {
            long mixed = (id * HASH_MULTIPLIER + parent) * HASH_MULTIPLIER;
            int place = (int) (mixed >>> 32) & (table.length - 1);
            while (table[place] >= 0 && (parents[table[place]] != parent || ids[table[place]] != id)) {
                place = (place + 1) & (table.length - 1);
            }
            return place;
        }

        private void grow() {
            parents = Arrays.copyOf(parents, 2 * count);
            ids = Arrays.copyOf(ids, 2 * count);
            table = new int[4 * count];
            Arrays.fill(table, -1);
            for (int node = 0; node < count; node++) {
                table[place(parents[node], ids[node])] = node;
            }
        }
    }

    /// Returns the number of each request's session.
    ///
    /// A trace that names sessions decides. Otherwise a request continues a session if it is a prompt of that
    /// session and something more: the full blocks that it shares with earlier requests end where that prompt
    /// ended, with a block that was new then. All others begin a session, those with a shared system prompt
    /// too.
    public long[] sessions() {
        long[] named = namedSessions();
        return Arrays.stream(named).noneMatch(session -> session == TraceRequest.NO_SESSION)
                ? named
                : inferredSessions();
    }

    /// Returns the numbers that the blocks alone say.
    public long[] inferredSessions() {
        long[] endOf = new long[nodeCount()];
        Arrays.fill(endOf, TraceRequest.NO_SESSION);
        boolean[] seen = new boolean[nodeCount()];
        long[] sessions = new long[requestCount()];
        for (int request = 0; request < sessions.length; request++) {
            int known = 0;
            while (known < storedBlocks(request) && seen[node(request, known)]) {
                known++;
            }
            long before = known == 0 ? TraceRequest.NO_SESSION : endOf[node(request, known - 1)];
            sessions[request] = before == TraceRequest.NO_SESSION ? request : before;
            for (int i = known; i < storedBlocks(request); i++) {
                seen[node(request, i)] = true;
            }
            if (known < storedBlocks(request)) {
                endOf[node(request, storedBlocks(request) - 1)] = sessions[request];
            }
        }
        return sessions;
    }
}

package io.kvcache.planner.replay;

import io.kvcache.planner.replay.HitCounter.HitTotals;
import java.util.Arrays;
import java.util.function.IntBinaryOperator;

/// Replays against several servers as one pool: each block lies at its owner, each server has an equal part of the
/// capacity, and evicts by LRU.
///
/// A request finds blocks from its start until one is missing at its owner. All of its blocks count as used, and
/// missing ones are put at their owners at once, the deepest as the oldest.
///
/// A server may evict a block before those behind it that lie on other servers. They are not found then, and age.
public final class PooledLruReplay implements SimulatedCache {

    private final int serverCount;
    private final int[] owners;

    /// @param owners server of each node of the forest, from 0 to `serverCount - 1`
    private PooledLruReplay(int serverCount, int[] owners) {
        this.serverCount = serverCount;
        this.owners = owners;
    }

    /// Places the blocks of a forest.
    ///
    /// @param serverCount 1 and up
    /// @param owner gives the server for a request and the index of its block; requests that share the block agree
    public static PooledLruReplay of(PrefixForest forest, int serverCount, IntBinaryOperator owner) {
        int[] owners = new int[forest.nodeCount()];
        Arrays.fill(owners, -1);
        for (int request = 0; request < forest.requestCount(); request++) {
            for (int block = 0; block < forest.storedBlocks(request); block++) {
                int node = forest.node(request, block);
                if (owners[node] < 0) {
                    owners[node] = owner.applyAsInt(request, block);
                }
            }
        }
        return new PooledLruReplay(serverCount, owners);
    }

    /// Returns the server that owns a node of the forest.
    public int owner(int node) {
        return owners[node];
    }

    @Override
    public String commandName() {
        return "lru*" + serverCount;
    }

    @Override
    public String title() {
        return "LRU over " + serverCount + " servers as one pool";
    }

    /// @param blocks capacity of all servers together; each has room for as many as the others, at least one
    @Override
    public HitTotals run(PrefixForest forest, int blocks, HitCounter counter) {
        LruServers servers = new LruServers(Math.max(1, blocks / serverCount));
        for (int request = 0; request < forest.requestCount(); request++) {
            int stored = forest.storedBlocks(request);
            int found = 0;
            while (found < stored && servers.contains(forest.node(request, found))) {
                found++;
            }
            counter.onRequest(request, found);
            for (int block = stored - 1; block >= 0; block--) {
                servers.use(forest.node(request, block));
            }
            counter.onServed(request, stored - found, servers.held);
        }
        return counter.totals();
    }

    /// One list of blocks a server, from the most to the least recently used. The lists are rings through one more
    /// entry for each server, behind the entries of the forest's nodes.
    private final class LruServers {

        private final int blocksEach;
        private final int[] sizes = new int[serverCount];
        private final boolean[] present = new boolean[owners.length];
        private final int[] newer = new int[owners.length + serverCount];
        private final int[] older = new int[owners.length + serverCount];
        private int held;

        LruServers(int blocksEach) {
            this.blocksEach = blocksEach;
            for (int ring = owners.length; ring < newer.length; ring++) {
                newer[ring] = ring;
                older[ring] = ring;
            }
        }

        boolean contains(int node) {
            return present[node];
        }

        /// Makes a block the most recently used of its owner, which evicts another if it has no room.
        void use(int node) {
            int server = owners[node];
            int ring = owners.length + server;
            if (present[node]) {
                remove(node);
            } else if (sizes[server] == blocksEach) {
                remove(newer[ring]);
            }
            present[node] = true;
            sizes[server]++;
            held++;
            newer[node] = ring;
            older[node] = older[ring];
            newer[older[ring]] = node;
            older[ring] = node;
        }

        private void remove(int node) {
            present[node] = false;
            sizes[owners[node]]--;
            held--;
            newer[older[node]] = newer[node];
            older[newer[node]] = older[node];
        }
    }
}

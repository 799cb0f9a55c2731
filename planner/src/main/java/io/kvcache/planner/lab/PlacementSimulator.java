package io.kvcache.planner.lab;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.HitCounter;
import io.kvcache.planner.replay.HitCounter.HitTotals;
import io.kvcache.planner.replay.HitCounter.ReplayListener;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.trace.Trace;
import io.kvcache.transport.cluster.BlockGroups;
import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.Placement;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.ViewCodec;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.IntBinaryOperator;
import java.util.stream.IntStream;
import java.util.stream.LongStream;

/// Replays a trace over servers that own its blocks as `transport.cluster` places them.
///
/// Requests come one after another and take no time. Servers are equal and share the capacity equally. A trace has no
/// keys, so random ones stand for them. Each figure is the mean of clusters with different names, which place
/// differently.
///
/// What depends on placement alone, without a trace, is measured over random keys.
public final class PlacementSimulator {

    /// Most servers: one more joins them.
    public static final int MAX_SERVERS = Placement.MAX_NODES - 1;

    private static final int CLUSTERS = 3;
    private static final int MIN_RANDOM_KEYS = 1_000_000;

    /// Keys that the joining server owns at least: the mean of the clusters is then known to 2 %.
    private static final int MIN_MOVED_KEYS = 1_000;

    private final PrefixForest forest;
    private final BlockGroups groups;
    private final BlockKey[] keys;
    private final int blocks;

    /// @param blocks capacity of all servers together, 1 and up
    public PlacementSimulator(Trace trace, int blocks) {
        this.blocks = blocks;
        forest = new PrefixForest(trace, BlockCountingRule.FULL_BLOCKS);
        groups = BlockGroups.of(trace.blockTokens());
        SplittableRandom random = new SplittableRandom(1);
        keys = new BlockKey[forest.nodeCount()];
        for (int node = 0; node < keys.length; node++) {
            keys[node] = key(random);
        }
    }

    private static BlockKey key(SplittableRandom random) {
        return new BlockKey(random.nextLong(), random.nextLong());
    }

    private static Placement placement(int cluster, int servers) {
        return new Placement(
                "sim-" + cluster,
                IntStream.range(0, servers)
                        .mapToObj(server -> ClusterNode.named("kv-" + server))
                        .toList());
    }

    /// Returns the bytes of a view of so many servers, with names and addresses as a StatefulSet gives them.
    public static int viewBytes(int servers) {
        List<NodeInfo> nodes = IntStream.range(0, servers)
                .mapToObj(server -> {
                    String host = "kv-" + server + ".kvcache.inference.svc.cluster.local";
                    return new NodeInfo(
                            new ClusterNode("kv-" + server, 1, "zone-a", "node-" + server),
                            0,
                            NodeState.SERVING,
                            "tls:" + host + ":7420",
                            host + ":7389",
                            "0.1.0",
                            0,
                            0);
                })
                .toList();
        BodyWriter body = new BodyWriter();
        ViewCodec.write(new ClusterView("prod-kv", 1, nodes), body);
        return body.size();
    }

    /// What a trace finds at some number of servers.
    ///
    /// @param hitRatio of the full blocks, 0 to 1
    /// @param minHitRatio of the cluster that finds the fewest
    /// @param readBalance blocks read from the server that serves the most, over the mean
    /// @param storedBalance distinct blocks of the trace at the server that owns the most, over the mean
    /// @param serversPerRead servers that have blocks of a request that finds any
    public record TraceRow(
            int servers,
            double hitRatio,
            double minHitRatio,
            double readBalance,
            double storedBalance,
            double serversPerRead) {}

    /// Replays the trace.
    ///
    /// @param servers 1 to [#MAX_SERVERS]
    public TraceRow replay(int servers) {
        List<TraceRow> rows = IntStream.range(0, CLUSTERS)
                .mapToObj(cluster -> replay(placement(cluster, servers)))
                .toList();
        return new TraceRow(
                servers,
                rows.stream().mapToDouble(TraceRow::hitRatio).average().orElseThrow(),
                rows.stream().mapToDouble(TraceRow::hitRatio).min().orElseThrow(),
                rows.stream().mapToDouble(TraceRow::readBalance).average().orElseThrow(),
                rows.stream().mapToDouble(TraceRow::storedBalance).average().orElseThrow(),
                rows.stream().mapToDouble(TraceRow::serversPerRead).average().orElseThrow());
    }

    private TraceRow replay(Placement placement) {
        int servers = placement.nodes().size();
        PooledLruReplay pool = PooledLruReplay.of(
                forest, servers, (request, block) -> placement.owner(keys[forest.node(request, groups.start(block))]));
        Reads reads = new Reads(pool, servers);
        HitTotals totals = pool.run(forest, blocks, new HitCounter(forest, 0, reads));
        long[] owned = new long[servers];
        for (int node = 0; node < keys.length; node++) {
            owned[pool.owner(node)]++;
        }
        double ratio = totals.blockHitRatio();
        return new TraceRow(servers, ratio, ratio, balance(reads.blocks), balance(owned), reads.serversPerRead());
    }

    /// Counts which servers are read.
    private final class Reads implements ReplayListener {

        private final PooledLruReplay pool;
        private final long[] blocks;
        private final BitSet asked;
        private long requests;
        private long servers;

        Reads(PooledLruReplay pool, int servers) {
            this.pool = pool;
            blocks = new long[servers];
            asked = new BitSet(servers);
        }

        @Override
        public void onFound(int request, int found) {
            asked.clear();
            for (int block = 0; block < found; block++) {
                int owner = pool.owner(forest.node(request, block));
                blocks[owner]++;
                asked.set(owner);
            }
            requests += found > 0 ? 1 : 0;
            servers += asked.cardinality();
        }

        double serversPerRead() {
            return requests == 0 ? 0 : (double) servers / requests;
        }
    }

    /// What placement does with random keys, at some number of servers and when one more joins.
    ///
    /// @param groupBalance groups at the server that owns the most, over the mean
    /// @param groupsMoved share of the groups that a join gives another owner
    /// @param slotBalance hash slots at the server that owns the most, over the mean
    /// @param slotsMoved share of the hash slots that a join gives another owner
    public record JoinRow(int servers, double groupBalance, double groupsMoved, double slotBalance, double slotsMoved) {

        /// Groups that move, over those that the new server owns if all own the same: 1 at best.
        public double groupsMovedOverShare() {
            return groupsMoved * (servers + 1);
        }

        /// The same for hash slots.
        public double slotsMovedOverShare() {
            return slotsMoved * (servers + 1);
        }
    }

    /// Lets a server join.
    ///
    /// @param servers before, 1 to [#MAX_SERVERS]
    public static JoinRow join(int servers) {
        List<JoinRow> rows = IntStream.range(0, CLUSTERS)
                .mapToObj(cluster -> join(placement(cluster, servers), placement(cluster, servers + 1)))
                .toList();
        return new JoinRow(
                servers,
                rows.stream().mapToDouble(JoinRow::groupBalance).average().orElseThrow(),
                rows.stream().mapToDouble(JoinRow::groupsMoved).average().orElseThrow(),
                rows.stream().mapToDouble(JoinRow::slotBalance).average().orElseThrow(),
                rows.stream().mapToDouble(JoinRow::slotsMoved).average().orElseThrow());
    }

    private static JoinRow join(Placement before, Placement after) {
        int servers = before.nodes().size();
        int count = Math.max(MIN_RANDOM_KEYS, MIN_MOVED_KEYS * (servers + 1));
        SplittableRandom random = new SplittableRandom(2);
        long[] owned = new long[servers];
        long moved = 0;
        for (int i = 0; i < count; i++) {
            BlockKey key = key(random);
            int owner = before.owner(key);
            owned[owner]++;
            moved += after.owner(key) == owner ? 0 : 1;
        }
        HashSlots slots = new HashSlots(before);
        HashSlots later = new HashSlots(after);
        long[] slotsOwned = new long[servers];
        long slotsMoved = 0;
        for (int slot = 0; slot < HashSlots.COUNT; slot++) {
            slotsOwned[slots.owner(slot)]++;
            slotsMoved += later.owner(slot) == slots.owner(slot) ? 0 : 1;
        }
        return new JoinRow(
                servers,
                balance(owned),
                (double) moved / count,
                balance(slotsOwned),
                (double) slotsMoved / HashSlots.COUNT);
    }

    private static double balance(long[] counts) {
        long sum = LongStream.of(counts).sum();
        return sum == 0 ? 1 : (double) LongStream.of(counts).max().orElseThrow() * counts.length / sum;
    }

    /// Replays against several servers as one pool: each block lies at its owner, each server has an equal
    /// part of the capacity, and evicts by LRU.
    ///
    /// A request finds blocks from its start until one is missing at its owner. All of its blocks count as
    /// used, and missing ones are put at their owners at once, the deepest as the oldest.
    ///
    /// A server may evict a block before those behind it that lie on other servers. They are not found then,
    /// and age.
    static final class PooledLruReplay implements SimulatedCache {

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
        /// @param owner gives the server for a request and the index of its block; requests that share the
        ///     block agree
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

        /// @param blocks capacity of all servers together; each has room for as many as the others, at least
        ///     one
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

        /// One list of blocks a server, from the most to the least recently used. The lists are rings through
        /// one more entry for each server, behind the entries of the forest's nodes.
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
}

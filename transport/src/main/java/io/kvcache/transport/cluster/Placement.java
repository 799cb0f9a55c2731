package io.kvcache.transport.cluster;

import io.kvcache.core.hash.Sha256;
import io.kvcache.core.identity.BlockKey;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.function.IntPredicate;
import java.util.stream.IntStream;

/// Ranks servers for a group by weighted rendezvous hashing. All processes that know the same cluster name and the
/// same servers rank alike, in whatever order they list them.
///
/// Each server has a score for each key; the highest score owns the group. Scores of different servers are
/// independent, so a server that joins takes over only what it owns from then on, a share of its weight over the
/// weight of all. A server that leaves moves only what it owned. Among `n` equal servers a join moves
/// `1 / (n + 1)` of the groups.
///
/// **Order and owners.** [#order] is by score alone. It also shows history: before a server joined, its groups
/// belonged to the next one in the order. [#owners] is for copies: it prefers other zones, then other hosts.
///
/// Servers are numbered by their index in the list given. Scores take [StrictMath], as platforms may round `Math.log`
/// differently.
///
/// **Sources.** Thaler and Ravishankar, "Using name-based mappings to increase hit rates" (1998); weights by
/// Schindelhauer and Schomaker, "Weighted distributed hash tables" (2005), the logarithmic method.
///
/// **Threads.** Immutable; any thread.
public final class Placement {

    /// Most servers.
    public static final int MAX_NODES = 4096;

    private static final double UNIT = 0x1.0p-52;

    /// Below one by more than a score's rounding errors.
    private static final double CERTAINLY_LESS = 1 - 0x1.0p-40;

    private final List<ClusterNode> nodes;
    private final long[] nameHashes;
    private final double[] weights;
    /// Places by the UTF-8 bytes of the names, which decide between equal scores.
    private final int[] nameRanks;

    /// @param cluster name of the cluster, at most 255 bytes of UTF-8 without NUL; empty for a fixed list of peers
    /// @param nodes 1 to [#MAX_NODES], with different names
    /// @throws IllegalArgumentException for another number of servers, or two of one name
    public Placement(String cluster, List<ClusterNode> nodes) {
        ClusterNode.checkText("cluster", cluster, 0);
        if (nodes.isEmpty() || nodes.size() > MAX_NODES) {
            throw new IllegalArgumentException(
                    "nodes = %s is out of range; allowed: 1 to %s".formatted(nodes.size(), MAX_NODES));
        }
        this.nodes = List.copyOf(nodes);
        checkNamesDiffer();
        nameHashes =
                nodes.stream().mapToLong(node -> hash(cluster, node.name())).toArray();
        weights = nodes.stream().mapToDouble(ClusterNode::weight).toArray();
        int[] byName = byName();
        nameRanks = new int[byName.length];
        for (int rank = 0; rank < byName.length; rank++) {
            nameRanks[byName[rank]] = rank;
        }
    }

    private void checkNamesDiffer() {
        Set<String> names = new HashSet<>();
        for (ClusterNode node : nodes) {
            if (!names.add(node.name())) {
                throw new IllegalArgumentException("two nodes have the name '" + node.name() + "'; names must differ");
            }
        }
    }

    private static long hash(String cluster, String name) {
        MessageDigest sha = Sha256.newDigest();
        sha.update(cluster.getBytes(StandardCharsets.UTF_8));
        sha.update((byte) 0);
        return ByteBuffer.wrap(sha.digest(name.getBytes(StandardCharsets.UTF_8)))
                .getLong();
    }

    /// Returns the servers' indexes by the UTF-8 bytes of their names.
    int[] byName() {
        byte[][] names = nodes.stream()
                .map(node -> node.name().getBytes(StandardCharsets.UTF_8))
                .toArray(byte[][]::new);
        return IntStream.range(0, names.length)
                .boxed()
                .sorted((one, other) -> Arrays.compareUnsigned(names[one], names[other]))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    /// The servers, numbered by their index here.
    public List<ClusterNode> nodes() {
        return nodes;
    }

    /// Returns the server that owns a group: the first of [#order].
    ///
    /// @param key of the group's first block
    public int owner(BlockKey key) {
        return first(key, _ -> true);
    }

    /// Returns the first server of [#order] that is eligible.
    ///
    /// @param key of the group's first block
    /// @param eligible holds for at least one server
    public int first(BlockKey key, IntPredicate eligible) {
        int first = -1;
        double best = 0;
        for (int node = 0; node < weights.length; node++) {
            double uniform = uniform(node, key);
            // As -log(u) >= 1 - u, the score is at most weight / (1 - u). That spares nearly all logarithms.
            if (weights[node] >= CERTAINLY_LESS * best * (1 - uniform) && eligible.test(node)) {
                double score = score(node, uniform);
                if (score > best || (score == best && nameRanks[node] < nameRanks[first])) {
                    first = node;
                    best = score;
                }
            }
        }
        return first;
    }

    /// Returns all servers by their score for a group, the highest first.
    ///
    /// @param key of the group's first block
    public int[] order(BlockKey key) {
        double[] scores = scores(key);
        return IntStream.range(0, scores.length)
                .boxed()
                .sorted(Comparator.<Integer>comparingDouble(node -> -scores[node])
                        .thenComparingInt(node -> nameRanks[node]))
                .mapToInt(Integer::intValue)
                .toArray();
    }

    /// Returns the servers that keep a group, its owner first.
    ///
    /// Each further copy goes to the highest score among the servers in zones without a copy, else among those on
    /// hosts without one, else among the rest. Empty zones count as one zone, and empty hosts as one host.
    ///
    /// @param key of the group's first block
    /// @param copies 1 and up; all servers are returned where there are no more
    public int[] owners(BlockKey key, int copies) {
        if (copies < 1) {
            throw new IllegalArgumentException("copies = %s is out of range; allowed: 1 and up".formatted(copies));
        }
        double[] scores = scores(key);
        int[] owners = new int[Math.min(copies, scores.length)];
        for (int copy = 0; copy < owners.length; copy++) {
            owners[copy] = next(scores, Arrays.copyOf(owners, copy));
        }
        return owners;
    }

    private int next(double[] scores, int[] chosen) {
        int best = 0;
        int bestSpread = -1;
        for (int node = 0; node < scores.length; node++) {
            int spread = spread(node, chosen);
            if (spread > bestSpread || (spread == bestSpread && isBefore(node, best, scores))) {
                best = node;
                bestSpread = spread;
            }
        }
        return best;
    }

    private boolean isBefore(int node, int other, double[] scores) {
        return scores[node] > scores[other] || (scores[node] == scores[other] && nameRanks[node] < nameRanks[other]);
    }

    /// Returns how far a server is from those with a copy: 2 in another zone, 1 on another host, 0 on the same one,
    /// -1 if it has a copy itself.
    private int spread(int node, int[] chosen) {
        ClusterNode here = nodes.get(node);
        boolean newZone = true;
        boolean newHost = true;
        for (int other : chosen) {
            if (other == node) {
                return -1;
            }
            newZone &= !nodes.get(other).zone().equals(here.zone());
            newHost &= !nodes.get(other).host().equals(here.host());
        }
        if (newZone) {
            return 2;
        }
        return newHost ? 1 : 0;
    }

    private double[] scores(BlockKey key) {
        double[] scores = new double[weights.length];
        for (int node = 0; node < scores.length; node++) {
            scores[node] = score(node, uniform(node, key));
        }
        return scores;
    }

    private double score(int node, double uniform) {
        return -weights[node] / StrictMath.log(uniform);
    }

    /// Returns the upper 52 bits of SplitMix64's finalizer over server and key, as a number above 0 and below 1. With
    /// 53 bits the half that is added would be rounded, at worst to 1, whose logarithm is 0.
    private double uniform(int node, BlockKey key) {
        long mixed = nameHashes[node] ^ key.hi() ^ Long.rotateLeft(key.lo(), 32);
        mixed = (mixed ^ (mixed >>> 30)) * 0xbf58476d1ce4e5b9L;
        mixed = (mixed ^ (mixed >>> 27)) * 0x94d049bb133111ebL;
        mixed ^= mixed >>> 31;
        return ((mixed >>> 12) + 0.5) * UNIT;
    }
}

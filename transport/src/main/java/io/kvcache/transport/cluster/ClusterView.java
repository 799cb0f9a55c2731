package io.kvcache.transport.cluster;

import io.kvcache.core.hash.Sha256;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// The servers of a cluster, as one of them knows them at a moment.
///
/// Two views with the same [#digest] place everything alike. [#epoch] counts the changes that one server has seen. It
/// says which of two views *of the same server* is newer, and nothing about views of different servers. The drops
/// that servers have applied are not part of the digest, as they move nothing.
///
/// Only servers in state [NodeState#SERVING] own anything.
///
/// **Meetings.** A server may appear that has owned something without the knowledge of this one. It may have
/// blocks of this one's groups, and later writes of its values. [#meetings] counts the views that show such servers.
/// The membership tells when two sides of a partition meet. Beyond that, a server counts that is past joining and was
/// not in the view before, as what it tells about itself may arrive only after the merge.
///
/// **Threads.** Immutable; any thread.
public final class ClusterView {

    private final String cluster;
    private final long epoch;
    private final List<NodeInfo> nodes;
    private final List<NodeInfo> serving;
    private final @Nullable Placement placement;
    private final long digest;
    private final long meetings;
    private final ReplicaPolicy replicas;

    /// @param cluster name of the cluster, at most 255 bytes of UTF-8 without NUL
    /// @param epoch number of this view at the server that tells it
    /// @param nodes in any order, with different names
    /// @throws IllegalArgumentException for two servers of one name
    public ClusterView(String cluster, long epoch, List<NodeInfo> nodes) {
        this(cluster, epoch, nodes, 0);
    }

    /// @param digest as another server has told it, or 0 to compute it
    public ClusterView(String cluster, long epoch, List<NodeInfo> nodes, long digest) {
        this(cluster, epoch, nodes, digest, 0);
    }

    private ClusterView(String cluster, long epoch, List<NodeInfo> nodes, long digest, long meetings) {
        ClusterNode.checkText("cluster", cluster, 0);
        this.cluster = cluster;
        this.epoch = epoch;
        this.nodes = nodes.stream().sorted(Comparator.comparing(NodeInfo::name)).toList();
        checkNamesDiffer();
        serving = this.nodes.stream()
                .filter(node -> node.state() == NodeState.SERVING)
                .toList();
        placement = serving.isEmpty()
                ? null
                : new Placement(cluster, serving.stream().map(NodeInfo::node).toList());
        this.digest = digest == 0 ? digestOf() : digest;
        this.meetings = meetings;
        replicas = ReplicaPolicy.of(features());
    }

    /// Returns the view that follows this one at the same server.
    ///
    /// @param merged whether the membership says that two sides of a partition have met
    public ClusterView next(long epoch, List<NodeInfo> nodes, boolean merged) {
        boolean meets = merged || nodes.stream().anyMatch(this::isUnseenOwner);
        return new ClusterView(cluster, epoch, nodes, 0, meets ? meetings + 1 : meetings);
    }

    private boolean isUnseenOwner(NodeInfo server) {
        NodeInfo known = node(server.name());
        return server.state() != NodeState.JOINING && (known == null || known.incarnation() != server.incarnation());
    }

    private void checkNamesDiffer() {
        Set<String> names = new HashSet<>();
        for (NodeInfo node : nodes) {
            if (!names.add(node.name())) {
                throw new IllegalArgumentException("two nodes have the name '" + node.name() + "'; names must differ");
            }
        }
    }

    @SuppressWarnings("EnumOrdinal") // the protocol fixes the order of the states
    private long digestOf() {
        MessageDigest sha = Sha256.newDigest();
        update(sha, cluster);
        for (NodeInfo each : nodes) {
            update(sha, each.name());
            update(sha, each.node().zone());
            update(sha, each.node().host());
            update(sha, each.address());
            update(sha, each.valueAddress());
            update(sha, each.version());
            sha.update(ByteBuffer.allocate(4 * Long.BYTES)
                    .putDouble(each.node().weight())
                    .putLong(each.incarnation())
                    .putLong(each.state().ordinal())
                    .putLong(each.features())
                    .flip());
        }
        return ByteBuffer.wrap(sha.digest()).getLong() | 1; // not 0, which stands for none
    }

    private static void update(MessageDigest sha, String text) {
        sha.update(text.getBytes(StandardCharsets.UTF_8));
        sha.update((byte) 0);
    }

    /// The cluster's name.
    public String cluster() {
        return cluster;
    }

    /// The number of this view at the server that tells it.
    public long epoch() {
        return epoch;
    }

    /// All servers, by name.
    public List<NodeInfo> nodes() {
        return nodes;
    }

    /// The servers that own something, by name; [Placement] numbers them in this order.
    public List<NodeInfo> serving() {
        return serving;
    }

    /// The places of groups, or null where no server is serving.
    public @Nullable Placement placement() {
        return placement;
    }

    /// The same for views with the same servers in the same states, as far as servers of one version compute it.
    public long digest() {
        return digest;
    }

    /// How many views of this server, up to this one, show servers that owned something without its knowledge. 0 in
    /// a view that another server has told.
    public long meetings() {
        return meetings;
    }

    /// Returns the server of this name, or null.
    public @Nullable NodeInfo node(String name) {
        return nodes.stream()
                .filter(node -> node.name().equals(name))
                .findFirst()
                .orElse(null);
    }

    /// The features that all servers have.
    public long features() {
        return nodes.stream().mapToLong(NodeInfo::features).reduce(-1L, (one, other) -> one & other);
    }

    /// Which groups have copies, as far as all servers agree.
    public ReplicaPolicy replicas() {
        return replicas;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof ClusterView view && view.epoch == epoch && view.digest == digest;
    }

    @Override
    public int hashCode() {
        return Long.hashCode(digest);
    }

    @Override
    public String toString() {
        return "view %s of '%s': %s"
                .formatted(
                        epoch,
                        cluster,
                        nodes.stream()
                                .map(node -> node.name() + " " + node.state())
                                .toList());
    }
}

package io.kvcache.transport.wire;

import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.Placement;
import java.util.ArrayList;
import java.util.List;

/// Servers of a cluster and views of it as bytes.
///
/// A view: `text cluster, u64 epoch, u64 digest, u32 nodes`, and each node. A node: `u16 bytes` that follow, `u64
/// incarnation, u8 state, f64 weight, u64 features, text name, zone, host, address, value address, version, u64
/// drops`. A later version may add fields at the end of a node.
public final class ViewCodec {

    private static final List<NodeState> STATES = List.of(NodeState.values());

    private ViewCodec() {}

    /// Writes a view.
    public static void write(ClusterView view, BodyWriter body) {
        body.text(view.cluster())
                .i64(view.epoch())
                .i64(view.digest())
                .i32(view.nodes().size());
        view.nodes().forEach(node -> write(node, body));
    }

    /// Reads a view.
    ///
    /// @throws ProtocolException when a field is out of range
    public static ClusterView read(BodyReader body) throws ProtocolException {
        String cluster = body.text("cluster");
        long epoch = body.i64("epoch");
        long digest = body.i64("digest");
        int count = body.count("nodes");
        if (count > Placement.MAX_NODES) {
            throw new ProtocolException("nodes = %s; allowed: 0 to %s".formatted(count, Placement.MAX_NODES));
        }
        List<NodeInfo> nodes = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            nodes.add(readNode(body));
        }
        try {
            return new ClusterView(cluster, epoch, nodes, digest);
        } catch (IllegalArgumentException impossible) {
            throw new ProtocolException(String.valueOf(impossible.getMessage()));
        }
    }

    /// Writes a server.
    public static void write(NodeInfo node, BodyWriter body) {
        BodyWriter fields = new BodyWriter(256)
                .i64(node.incarnation())
                .oneOf(node.state(), STATES)
                .i64(Double.doubleToLongBits(node.node().weight()))
                .i64(node.features())
                .text(node.name())
                .text(node.node().zone())
                .text(node.node().host())
                .text(node.address())
                .text(node.valueAddress())
                .text(node.version())
                .i64(node.drops());
        body.u16(fields.size()).append(fields);
    }

    /// Reads a server.
    ///
    /// @throws ProtocolException when a field is out of range
    public static NodeInfo readNode(BodyReader body) throws ProtocolException {
        BodyReader fields = new BodyReader(body.slice("node", body.u16("node bytes")));
        long incarnation = fields.i64("incarnation");
        NodeState state = fields.oneOf("state", STATES);
        double weight = Double.longBitsToDouble(fields.i64("weight"));
        long features = fields.i64("features");
        try {
            ClusterNode node = new ClusterNode(fields.text("name"), weight, fields.text("zone"), fields.text("host"));
            return new NodeInfo(
                    node,
                    incarnation,
                    state,
                    fields.text("address"),
                    fields.text("value address"),
                    fields.text("version"),
                    features,
                    fields.hasRemaining() ? fields.i64("drops") : 0);
        } catch (IllegalArgumentException impossible) {
            throw new ProtocolException(String.valueOf(impossible.getMessage()));
        }
    }
}

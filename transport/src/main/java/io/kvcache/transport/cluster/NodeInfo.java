package io.kvcache.transport.cluster;

/// A server of a cluster, as it tells the others about itself.
///
/// @param node what decides its place: name, weight, zone and host
/// @param incarnation start of the process, in milliseconds since 1970. A higher one under the same name is a restart
/// @param state what it does at present
/// @param address where clients reach its blocks, as [io.kvcache.transport.client.RemoteKvCache#connect] takes it; at
///     most 255 bytes of UTF-8
/// @param valueAddress `host:port` where clients of Redis Cluster reach its values; empty without such a listener
/// @param version of the server's software, for people; at most 255 bytes of UTF-8
/// @param features a bit for each feature that all servers must have before one uses it
/// @param drops digest of the drops that it has applied, equal at servers that have applied the same; 0 for none
public record NodeInfo(
        ClusterNode node,
        long incarnation,
        NodeState state,
        String address,
        String valueAddress,
        String version,
        long features,
        long drops) {

    /// A server that has applied no drops.
    public NodeInfo(
            ClusterNode node,
            long incarnation,
            NodeState state,
            String address,
            String valueAddress,
            String version,
            long features) {
        this(node, incarnation, state, address, valueAddress, version, features, 0);
    }

    public NodeInfo {
        ClusterNode.checkText("address", address, 1);
        ClusterNode.checkText("valueAddress", valueAddress, 0);
        ClusterNode.checkText("version", version, 0);
    }

    /// The name, which stays the same over restarts.
    public String name() {
        return node.name();
    }

    /// Returns this server in another state.
    public NodeInfo withState(NodeState other) {
        return new NodeInfo(node, incarnation, other, address, valueAddress, version, features, drops);
    }

    /// Returns this server after it has applied other drops.
    public NodeInfo withDrops(long digest) {
        return new NodeInfo(node, incarnation, state, address, valueAddress, version, features, digest);
    }
}

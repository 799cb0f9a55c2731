package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.Placement;
import java.util.List;
import org.jspecify.annotations.Nullable;

/// A view of the cluster, and the connections to its servers. A call uses one route from its begin to its end.
///
/// **Threads.** Any.
final class ClusterRoute {

    private final ClusterView view;
    private final List<Peer<ClusterConnection>> serving;
    private final List<Peer<ClusterConnection>> all;
    private volatile @Nullable HashSlots slots;

    /// A server that is reached, and its connection.
    record Reached(Peer<ClusterConnection> peer, ClusterConnection connection) {}

    /// @param serving in the order of [ClusterView#serving]
    /// @param all servers of the view
    ClusterRoute(ClusterView view, List<Peer<ClusterConnection>> serving, List<Peer<ClusterConnection>> all) {
        this.view = view;
        this.serving = List.copyOf(serving);
        this.all = List.copyOf(all);
    }

    ClusterView view() {
        return view;
    }

    /// The servers of the view, whether they serve or not.
    List<Peer<ClusterConnection>> all() {
        return all;
    }

    /// Returns the owner of a group, or the next server in the group's order that is reached. While the owner fails,
    /// that one takes its place, as it will own the group once the view says so.
    ///
    /// @param untilNanos moment until which a first connection is waited for
    /// @return null when none is reached
    @Nullable
    Reached reach(BlockKey group, Namespace namespace, long untilNanos) {
        Placement placement = view.placement();
        if (placement == null) {
            return null;
        }
        Reached owner = reach(serving.get(placement.owner(group)), namespace, untilNanos);
        if (owner != null) {
            return owner;
        }
        for (int node : placement.order(group)) {
            Reached next = reach(serving.get(node), namespace, untilNanos);
            if (next != null) {
                return next;
            }
        }
        return null;
    }

    /// Returns the owner of an object, or null when it is not reached. No other server takes its place: an object may
    /// be replaced, and must not exist in two places.
    @Nullable
    Reached reachOwner(byte[] key, Namespace namespace, long untilNanos) {
        Placement placement = view.placement();
        return placement == null
                ? null
                : reach(serving.get(slots(placement).owner(HashSlots.of(key))), namespace, untilNanos);
    }

    private HashSlots slots(Placement placement) {
        HashSlots now = slots;
        if (now == null) {
            now = new HashSlots(placement);
            slots = now;
        }
        return now;
    }

    static @Nullable Reached reach(Peer<ClusterConnection> peer, Namespace namespace, long untilNanos) {
        ClusterConnection connection = peer.awaitCacheFor(namespace, untilNanos);
        return connection == null ? null : new Reached(peer, connection);
    }

    /// Returns the addresses of all servers.
    List<String> addresses() {
        return view.nodes().stream().map(NodeInfo::address).toList();
    }
}

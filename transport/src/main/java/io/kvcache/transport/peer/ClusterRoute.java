package io.kvcache.transport.peer;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.HashSlots;
import io.kvcache.transport.cluster.Placement;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A view of the cluster, and the connections to its servers. A call uses one route from its begin to its end.
///
/// **Threads.** Any.
final class ClusterRoute {

    private static final int MAX_COPY_PLACES = 1024;

    private final ClusterView view;
    private final List<Peer> serving;
    private final List<Peer> all;
    private volatile @Nullable HashSlots slots;

    /// Servers for the copies of groups, by group: they take far longer to compute than an owner.
    private final Cache<BlockKey, int[]> copyPlaces = Caffeine.newBuilder()
            .maximumSize(MAX_COPY_PLACES)
            .executor(Runnable::run)
            .build();

    /// A server that is reached, and its connection.
    record Reached(Peer peer, ClusterConnection connection) {}

    /// @param serving in the order of [ClusterView#serving]
    /// @param all servers of the view
    ClusterRoute(ClusterView view, List<Peer> serving, List<Peer> all) {
        this.view = view;
        this.serving = List.copyOf(serving);
        this.all = List.copyOf(all);
    }

    ClusterView view() {
        return view;
    }

    /// The servers of the view, whether they serve or not.
    List<Peer> all() {
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

    /// Returns those of the servers for a group's copies that are reached now, its owner first. Waits for none of
    /// them.
    ///
    /// @param copies of the group, that of its owner among them; [GroupHeat#MAX_COPIES] at most
    List<Reached> copies(BlockKey group, int copies, Namespace namespace) {
        Placement placement = view.placement();
        if (placement == null) {
            return List.of();
        }
        int[] places = copyPlaces.get(group, key -> placement.owners(key, GroupHeat.MAX_COPIES));
        return IntStream.of(places)
                .limit(copies)
                .mapToObj(node -> reachNow(serving.get(node), namespace))
                .filter(Objects::nonNull)
                .toList();
    }

    /// Returns the server that owns a group after its present owner has gone, or null when it is not reached now.
    @Nullable
    Reached second(BlockKey group, Namespace namespace) {
        Placement placement = view.placement();
        if (placement == null || serving.size() == 1) {
            return null;
        }
        int owner = placement.owner(group);
        return reachNow(serving.get(placement.first(group, node -> node != owner)), namespace);
    }

    private static @Nullable Reached reachNow(Peer peer, Namespace namespace) {
        ClusterConnection connection = peer.cacheFor(namespace);
        return connection == null ? null : new Reached(peer, connection);
    }

    /// Returns those servers whose memory this process maps; if there are none, those in the same zone; if there
    /// are none or the zone is unknown, all. A client is in the zone of the servers on its host.
    ///
    /// @param servers that serve
    List<Reached> nearest(List<Reached> servers) {
        List<Reached> mapped = servers.stream()
                .filter(each -> each.connection.isMemoryMapped())
                .toList();
        if (!mapped.isEmpty()) {
            return mapped;
        }
        String zone = ownZone();
        List<Reached> near = zone.isEmpty()
                ? List.of()
                : servers.stream().filter(each -> zone(each.peer).equals(zone)).toList();
        return near.isEmpty() ? servers : near;
    }

    private String ownZone() {
        for (Peer peer : serving) {
            ClusterConnection connection = peer.connection();
            if (connection != null && connection.isMemoryMapped() && !zone(peer).isEmpty()) {
                return zone(peer);
            }
        }
        return "";
    }

    private String zone(Peer peer) {
        return view.serving().get(serving.indexOf(peer)).node().zone();
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

    static @Nullable Reached reach(Peer peer, Namespace namespace, long untilNanos) {
        ClusterConnection connection = peer.awaitCacheFor(namespace, untilNanos);
        return connection == null ? null : new Reached(peer, connection);
    }
}

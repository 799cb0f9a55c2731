package io.kvcache.transport.peer;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.transport.cluster.BlockGroup;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.Placement;
import io.kvcache.transport.cluster.ReplicaPolicy;
import io.kvcache.transport.peer.Peer.RetiredPeers;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/// The servers of a cluster that owned a group before this one did, or own it now, and, while this one drains,
/// those that own its groups after it.
///
/// No earlier view is kept, as the order of a group shows its history:
///
/// - Before this server joined, the group belonged to the next one in the order. That one is asked for a time after
///   this server has begun to serve, or has met the other side of a partition; see [ClusterView#meetings].
/// - A server that is about to leave stands before this one in the order, and owned the group until then.
///
/// A server that is asked for a group which it does not own has no former owners of it. It asks the owner, if that
/// is reached now, and keeps a copy: see [GroupCopies]. Where the owner is not reached, it may own the group next,
/// and asks as if it did.
///
/// A server that has not applied just the drops that this one knows is not asked: it may have what was dropped.
///
/// **Threads.** Any.
final class FormerOwners implements AutoCloseable {

    private final String self;
    private final long windowNanos;
    private final LongSupplier drops;
    private final PeerClock clock;
    private final Function<String, Peer> connector;
    private final Runnable endListening;
    private final Map<String, Peer> peers = new HashMap<>();
    private final RetiredPeers retired = new RetiredPeers();
    private volatile State state = State.NONE;
    private volatile boolean closed;

    /// What follows from a view.
    ///
    /// @param placement of the servers that serve or drain, or null where none does
    /// @param nodes in the order of the placement
    /// @param peers connections to them; null for this server
    /// @param self index of this server, or -1 while it owns nothing
    /// @param draining whether any server is about to leave
    /// @param meetings of the view
    /// @param askNextUntil moment of the clock until which the next one in the order is asked
    /// @param replicas which groups have copies
    private record State(
            @Nullable Placement placement,
            List<NodeInfo> nodes,
            List<@Nullable Peer> peers,
            int self,
            boolean draining,
            long meetings,
            long askNextUntil,
            ReplicaPolicy replicas) {

        static final State NONE =
                new State(null, List.of(), List.of(), -1, false, 0, Long.MIN_VALUE, ReplicaPolicy.NONE);

        /// Returns the index of a group's owner, or -1 where no server serves.
        int owner(BlockChain group) {
            Placement all = placement;
            return all == null || nodes.stream().noneMatch(State::serves)
                    ? -1
                    : all.first(group.key(0), node -> serves(nodes.get(node)));
        }

        private static boolean serves(NodeInfo node) {
            return node.state() == NodeState.SERVING;
        }
    }

    /// @param connector makes a connection to another server at its address, which is not connected yet
    FormerOwners(PeeredKvCache.Handover handover, PeerClock clock, Function<String, Peer> connector) {
        self = handover.self();
        windowNanos = handover.window().toNanos();
        drops = handover.drops();
        this.clock = clock;
        this.connector = connector;
        endListening = handover.views().listen(this::onView);
        onView(handover.views().view());
    }

    private void onView(ClusterView view) {
        long now = clock.nanos();
        List<Peer> added = new ArrayList<>();
        synchronized (this) {
            if (!closed) {
                use(view, now, added);
            }
        }
        added.forEach(Peer::connect); // not under the lock, as that may wait for a thread
    }

    /// @param added takes the connections that are new
    private void use(ClusterView view, long now, List<Peer> added) {
        List<NodeInfo> nodes = view.nodes().stream()
                .filter(node -> node.state() != NodeState.JOINING)
                .toList();
        NodeInfo own = view.node(self);
        boolean serves = own != null && own.state() == NodeState.SERVING;
        State before = state;
        boolean opens = serves && (before.self < 0 || before.meetings != view.meetings());
        state = new State(
                nodes.isEmpty()
                        ? null
                        : new Placement(
                                view.cluster(),
                                nodes.stream().map(NodeInfo::node).toList()),
                nodes,
                peers(nodes, added),
                serves ? nodes.indexOf(own) : -1,
                nodes.stream().anyMatch(node -> node.state() == NodeState.DRAINING),
                view.meetings(),
                opens ? now + windowNanos : before.askNextUntil,
                view.replicas());
        retireOthers(nodes, now);
    }

    private List<@Nullable Peer> peers(List<NodeInfo> nodes, List<Peer> added) {
        List<@Nullable Peer> all = new ArrayList<>();
        nodes.forEach(node -> all.add(peer(node, added)));
        return all;
    }

    private @Nullable Peer peer(NodeInfo node, List<Peer> added) {
        if (node.name().equals(self)) {
            return null;
        }
        return peers.computeIfAbsent(node.address(), address -> {
            Peer peer = connector.apply(address);
            added.add(peer);
            return peer;
        });
    }

    private void retireOthers(List<NodeInfo> nodes, long now) {
        peers.entrySet().removeIf(entry -> {
            boolean gone = nodes.stream().noneMatch(node -> node.address().equals(entry.getKey()));
            if (gone) {
                retired.add(entry.getValue(), now);
            }
            return gone;
        });
        retired.closeUnused(now);
    }

    /// Returns the servers to ask for a group that this one lacks, the first choice first; empty to ask none.
    List<Peer> holders(BlockChain group) {
        State now = state;
        Placement placement = now.placement;
        if (placement == null || now.self < 0 || !BlockGroup.isGroups(group.namespace())) {
            return List.of();
        }
        Peer owner = now.replicas == ReplicaPolicy.NONE ? null : otherOwner(now, group);
        if (owner != null) {
            return List.of(owner);
        }
        boolean askNext = now.askNextUntil - clock.nanos() > 0;
        return askNext || now.draining
                ? holders(now, placement.order(group.key(0)), askNext, drops.getAsLong())
                : List.of();
    }

    /// Returns the owner of a group that is not this server's, if it can be asked now. It is not waited for:
    /// clients come here when it has just died.
    private @Nullable Peer otherOwner(State now, BlockChain group) {
        int owner = now.owner(group);
        Peer peer = owner < 0 ? null : now.peers.get(owner);
        return peer != null && now.nodes.get(owner).drops() == drops.getAsLong() && peer.connectionIfUsable() != null
                ? peer
                : null;
    }

    private static List<Peer> holders(State now, int[] order, boolean askNext, long drops) {
        List<Peer> holders = new ArrayList<>();
        boolean passed = false;
        for (int node : order) {
            NodeInfo info = now.nodes.get(node);
            boolean draining = info.state() == NodeState.DRAINING;
            boolean agrees = info.drops() == drops;
            Peer peer = now.peers.get(node);
            if (node == now.self) {
                passed = true;
                if (!askNext) {
                    return holders;
                }
            } else if (peer != null && !passed && draining && agrees) {
                holders.add(peer);
            } else if (peer != null && passed && !draining) {
                if (agrees) {
                    holders.add(peer);
                }
                return holders;
            }
        }
        return holders;
    }

    /// Returns the owner of a group while this server drains, if it has applied the same drops; otherwise null.
    @Nullable
    Peer heir(BlockChain group) {
        State now = state;
        Placement placement = now.placement;
        if (placement == null || now.self >= 0) {
            return null;
        }
        for (int node : placement.order(group.key(0))) {
            Peer peer = now.peers.get(node);
            NodeInfo info = now.nodes.get(node);
            if (peer != null && info.state() == NodeState.SERVING) {
                return info.drops() == drops.getAsLong() ? peer : null;
            }
        }
        return null;
    }

    /// Returns whether the holder should evict a group that was fetched from it, as it is this server's now.
    /// Where each group that was read has a second copy, the former owner has the place for it.
    boolean isMove(BlockChain group) {
        return !isCopy(group) && state.replicas != ReplicaPolicy.REUSED;
    }

    /// Returns whether what this server fetches of a group is a copy, as another one owns it.
    boolean isCopy(BlockChain group) {
        State now = state;
        boolean hasCopies = now.self >= 0 && now.replicas != ReplicaPolicy.NONE;
        return hasCopies && BlockGroup.isGroups(group.namespace()) && now.owner(group) != now.self;
    }

    @Override
    public void close() {
        endListening.run();
        synchronized (this) {
            closed = true;
            peers.values().forEach(Peer::close);
            retired.closeAll();
        }
    }
}

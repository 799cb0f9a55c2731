package io.kvcache.cluster;

import io.kvcache.transport.cluster.NodeInfo;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// A member of a [SimulatedNetwork].
///
/// **Threads.** The one of its network.
public final class SimulatedMembership implements Membership {

    private final SimulatedNetwork network;

    /// What the others have told, by member; as it was told, with its number.
    private final Map<SimulatedMembership, Told> heard = new HashMap<>();

    /// When the latest message to each other one arrives.
    private final Map<SimulatedMembership, Long> lastArrivals = new HashMap<>();

    private final Set<SimulatedMembership> met = new HashSet<>();
    private List<SimulatedMembership> present = List.of();
    private List<NodeInfo> told = List.of();
    private @Nullable NodeInfo self;
    private @Nullable Listener listener;
    private long revision;
    private boolean stopped;
    private boolean hasToLook;

    SimulatedMembership(SimulatedNetwork network) {
        this.network = network;
    }

    private record Told(NodeInfo info, long revision) {}

    /// Joins; it is alone at first.
    ///
    /// @throws IllegalStateException when another live member has this name
    @Override
    public void start(NodeInfo own, Listener ownListener) {
        network.join(this, own.name());
        self = own;
        listener = ownListener;
        present = List.of(this);
        tell(false);
        network.meetAll(this);
    }

    @Override
    public void update(NodeInfo changed) {
        self = changed;
        revision++;
        network.tell(this);
        tell(false);
    }

    @Override
    public void broadcast(byte[] message) {
        if (message.length > MAX_MESSAGE_BYTES) {
            throw new IllegalArgumentException(
                    "a message has %d bytes; allowed: 0 to %d".formatted(message.length, MAX_MESSAGE_BYTES));
        }
        network.broadcast(this, message);
    }

    @Override
    public void close() {
        if (listener != null) {
            end();
            network.leave(this);
        }
    }

    /// Tells nothing any more.
    void end() {
        listener = null;
    }

    NodeInfo self() {
        return Objects.requireNonNull(self);
    }

    long revision() {
        return revision;
    }

    boolean isStopped() {
        return stopped;
    }

    void setStopped(boolean stands) {
        stopped = stands;
        if (!stands && hasToLook) {
            look();
        }
    }

    /// Returns when a message arrives: not before the one before it.
    long inOrder(SimulatedMembership to, long nanos) {
        return Objects.requireNonNull(lastArrivals.merge(to, nanos, Math::max));
    }

    void hear(SimulatedMembership from, NodeInfo info, long number) {
        Told known = heard.get(from);
        if (known == null || known.revision() < number) {
            heard.put(from, new Told(info, number));
            if (present.contains(from)) {
                tell(false);
            } else if (!met.contains(from)) {
                look();
            }
        }
    }

    void receive(SimulatedMembership from, byte[] message) {
        if (listener != null && !stopped) {
            listener.onMessage(from.self().name(), message);
        }
    }

    /// Finds out who is there now.
    void look() {
        hasToLook = stopped;
        if (stopped || listener == null) {
            return;
        }
        List<SimulatedMembership> now = new ArrayList<>(network.reachable(this));
        now.removeIf(other -> other != this && !heard.containsKey(other));
        boolean merged = now.stream().anyMatch(other -> !present.contains(other) && met.contains(other));
        present = List.copyOf(now);
        met.addAll(present);
        tell(merged);
    }

    private void tell(boolean merged) {
        if (listener == null || stopped) {
            return;
        }
        Map<String, NodeInfo> byName = new LinkedHashMap<>();
        for (SimulatedMembership member : present) {
            NodeInfo info = member == this
                    ? self()
                    : Objects.requireNonNull(heard.get(member)).info();
            byName.merge(info.name(), info, (one, other) -> one.incarnation() >= other.incarnation() ? one : other);
        }
        List<NodeInfo> list = List.copyOf(byName.values());
        if (!list.equals(told) || merged) {
            told = list;
            listener.onMembers(list, merged);
        }
    }
}

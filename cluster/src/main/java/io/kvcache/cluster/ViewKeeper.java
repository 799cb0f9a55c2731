package io.kvcache.cluster;

import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.ViewSource;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.ProtocolException;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.SequencedMap;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Keeps the view of the cluster that follows from what a membership tells, and this server's own part of it.
///
/// **Ownership.** Closes its membership.
///
/// **Threads.** Any. Listeners are called by the membership's threads, one view after another; the last is the
/// newest.
public final class ViewKeeper implements ViewSource, AutoCloseable {

    private static final System.Logger LOG = System.getLogger(ViewKeeper.class.getName());

    private final Membership membership;
    private final Departures departures;
    private final List<Listener> listeners = new CopyOnWriteArrayList<>();
    private final Map<Integer, MessageReader> messageReaders = new ConcurrentHashMap<>();
    private final Set<String> unreadable = ConcurrentHashMap.newKeySet();
    private final AtomicLong unreadableMessages = new AtomicLong();
    private final AtomicLong viewChanges = new AtomicLong();
    private final AtomicLong merges = new AtomicLong();

    /// Held while this server's information changes, so that the membership hears the changes in order. Listeners
    /// may be called meanwhile.
    private final Object selfLock = new Object();

    private volatile @Nullable NodeInfo self;
    private volatile ClusterView view;

    /// @param cluster name of the cluster, at most 255 bytes of UTF-8 without NUL
    public ViewKeeper(String cluster, Membership membership) {
        this(cluster, membership, JGroupsMembership.Settings.DEFAULT_FAILURE_AFTER, System::nanoTime);
    }

    /// @param failureAfter a server that is back after less than this was never gone, see [#flaps]
    /// @param nanoTime nanoseconds since some fixed moment
    public ViewKeeper(String cluster, Membership membership, Duration failureAfter, LongSupplier nanoTime) {
        this.membership = membership;
        departures = new Departures(failureAfter.toNanos(), nanoTime);
        view = new ClusterView(cluster, 0, List.of());
    }

    /// Joins the cluster. When it returns, this server is in its own view.
    ///
    /// @throws IllegalStateException when another live server has this name
    public void start(NodeInfo self) {
        synchronized (selfLock) {
            if (this.self != null) {
                throw new IllegalStateException(
                        "the membership of node '" + self.name() + "' has been started already");
            }
            this.self = self;
        }
        membership.start(self, new MembershipListener());
    }

    /// Returns what this server tells about itself.
    ///
    /// @throws IllegalStateException before [#start]
    public NodeInfo self() {
        NodeInfo own = self;
        if (own == null) {
            throw new IllegalStateException("the membership has not been started; call start first");
        }
        return own;
    }

    /// Tells all servers that this one is in another state.
    public void setState(NodeState state) {
        synchronized (selfLock) {
            update(self().withState(state));
        }
    }

    /// Tells all servers which drops this one has applied.
    void setDrops(long digest) {
        synchronized (selfLock) {
            update(self().withDrops(digest));
        }
    }

    /// Returns the secret of this server; see [Membership#ownSecret].
    public @Nullable String ownSecret() {
        return membership.ownSecret();
    }

    /// Returns the secret of the server at an address of the view; see [Membership#secretOf]. Null when it is not
    /// known.
    public @Nullable String secretAt(String address) {
        return view.nodes().stream()
                .filter(node -> node.address().equals(address))
                .map(node -> membership.secretOf(node.name()))
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }

    /// Sends a message to all other servers; see [Membership#broadcast].
    void broadcast(byte[] message) {
        membership.broadcast(message);
    }

    /// Gives the messages of other servers that begin with a byte to a reader, which must not block.
    ///
    /// @param kind the byte
    void listenToMessages(int kind, MessageReader reader) {
        messageReaders.put(kind, reader);
    }

    /// Reads messages of one kind.
    @FunctionalInterface
    interface MessageReader {

        /// Reads one.
        ///
        /// @param from name of the sender
        /// @param body what follows the kind
        /// @throws ProtocolException when it cannot be read, which is counted and logged
        void read(String from, BodyReader body) throws ProtocolException;
    }

    /// Tells all servers something else about this one.
    ///
    /// @param changed with the same name and incarnation
    public void update(NodeInfo changed) {
        synchronized (selfLock) {
            NodeInfo own = self();
            if (!own.name().equals(changed.name()) || own.incarnation() != changed.incarnation()) {
                throw new IllegalArgumentException(
                        "node '%s' of incarnation %s cannot become '%s' of %s; both stay the same while it runs"
                                .formatted(own.name(), own.incarnation(), changed.name(), changed.incarnation()));
            }
            self = changed;
            membership.update(changed);
        }
    }

    @Override
    public ClusterView view() {
        return view;
    }

    @Override
    public Runnable listen(Consumer<ClusterView> listener) {
        Listener added = new Listener(listener);
        listeners.add(added);
        return () -> listeners.remove(added);
    }

    /// Returns how often the view has changed.
    public long viewChanges() {
        return viewChanges.get();
    }

    /// Returns how often two sides of a partition have met again.
    public long mergeCount() {
        return merges.get();
    }

    /// Returns how often servers were gone from the view for less than the failure timeout, without a restart. It
    /// stays 0 as long as no live server is suspected.
    public long flaps() {
        return departures.flaps.get();
    }

    /// A server that is in the view no more.
    ///
    /// @param ago when it left
    /// @param drained whether it had drained before, as a server does that is stopped
    public record LeftServer(String name, Duration ago, boolean drained) {}

    /// Returns the servers that have left within the last hour and are not back, the latest 64 of them, those
    /// that left first at the beginning.
    public List<LeftServer> left() {
        return departures.left();
    }

    /// Returns how many messages of other servers could not be read or believed. It stays 0 while all servers
    /// have the same version.
    public long unreadableMessages() {
        return unreadableMessages.get();
    }

    /// Leaves the cluster. The view stays as it is.
    @Override
    public void close() {
        membership.close();
    }

    /// A view in which other drops are applied and nothing else differs has the number of the one before.
    private void onMembers(List<NodeInfo> members, boolean merged) {
        ClusterView before = view;
        ClusterView numbered = before.next(before.epoch() + 1, members, merged);
        ViewChange change = new ViewChange(before, numbered, merged);
        if (change.isOfDropsAlone()) {
            ClusterView same = before.next(before.epoch(), members, false);
            view = same;
            listeners.forEach(listener -> listener.tell(same));
            return;
        }
        ClusterView after = change.after();
        view = after;
        viewChanges.incrementAndGet();
        if (merged) {
            merges.incrementAndGet();
        }
        LOG.log(change.isTrouble() ? Level.WARNING : Level.INFO, change::toString);
        change.gone().forEach(node -> unreadable.remove(node.name()));
        departures.onChange(change);
        listeners.forEach(listener -> listener.tell(after));
    }

    /// An instance each time, so that a listener may be added twice.
    private static final class Listener {

        private final Consumer<ClusterView> consumer;

        Listener(Consumer<ClusterView> consumer) {
            this.consumer = consumer;
        }

        void tell(ClusterView view) {
            try {
                consumer.accept(view);
            } catch (RuntimeException bug) {
                LOG.log(Level.ERROR, "a listener failed with view " + view.epoch(), bug);
            }
        }
    }

    private final class MembershipListener implements Membership.Listener {

        @Override
        public void onMembers(List<NodeInfo> members, boolean merged) {
            ViewKeeper.this.onMembers(members, merged);
        }

        @Override
        public void onMessage(String from, byte[] message) {
            BodyReader body = new BodyReader(ByteBuffer.wrap(message));
            try {
                int kind = body.u8("kind");
                MessageReader reader = messageReaders.get(kind);
                if (reader == null) {
                    throw new ProtocolException("kind = %s; allowed: %s".formatted(kind, messageReaders.keySet()));
                }
                reader.read(from, body);
            } catch (ProtocolException wrong) {
                unreadableMessages.incrementAndGet();
                if (unreadable.add(from)) {
                    LOG.log(
                            Level.WARNING,
                            "%s sends a message of %s bytes that cannot be read, and perhaps more of them, which are only counted: %s"
                                    .formatted(from, message.length, wrong.getMessage()));
                }
            }
        }

        @Override
        public void onUnreadable() {
            unreadableMessages.incrementAndGet();
        }
    }

    /// Knows the servers that have left, and counts those that come back so soon that they cannot have been away.
    ///
    /// **Threads.** Any.
    private static final class Departures {

        private static final long KEPT_NANOS = TimeUnit.HOURS.toNanos(1);
        private static final int MAX_KEPT = 64;

        private final long failureNanos;
        private final LongSupplier nanoTime;
        private final SequencedMap<String, Departure> departures = new LinkedHashMap<>();
        private final AtomicLong flaps = new AtomicLong();

        private record Departure(NodeInfo node, long nanos) {}

        Departures(long failureNanos, LongSupplier nanoTime) {
            this.failureNanos = failureNanos;
            this.nanoTime = nanoTime;
        }

        synchronized void onChange(ViewChange change) {
            long now = nanoTime.getAsLong();
            List<String> back = change.came().stream()
                    .filter(node -> {
                        Departure departure = departures.remove(node.name());
                        return departure != null
                                && departure.node.incarnation() == node.incarnation()
                                && now - departure.nanos <= failureNanos;
                    })
                    .map(NodeInfo::name)
                    .toList();
            if (!back.isEmpty()) {
                flaps.incrementAndGet();
                LOG.log(
                        Level.WARNING,
                        "view " + change.after().epoch() + ": " + String.join(", ", back)
                                + " came back within the failure timeout without a restart; check load and network");
            }
            change.gone().forEach(node -> departures.putLast(node.name(), new Departure(node, now)));
            while (departures.size() > MAX_KEPT) {
                departures.pollFirstEntry();
            }
        }

        synchronized List<LeftServer> left() {
            long now = nanoTime.getAsLong();
            departures.values().removeIf(departure -> now - departure.nanos > KEPT_NANOS);
            return departures.values().stream()
                    .map(departure -> new LeftServer(
                            departure.node.name(),
                            Duration.ofNanos(now - departure.nanos),
                            departure.node.state() == NodeState.DRAINING))
                    .toList();
        }
    }

    /// What differs between two views of a server, for its log.
    ///
    /// @param merged whether two sides of a partition have met again
    record ViewChange(ClusterView before, ClusterView after, boolean merged) {

        /// Returns the servers that the earlier view has not.
        List<NodeInfo> came() {
            return after.nodes().stream()
                    .filter(node -> before.node(node.name()) == null)
                    .toList();
        }

        /// Returns the servers that only the earlier view has.
        List<NodeInfo> gone() {
            return before.nodes().stream()
                    .filter(node -> after.node(node.name()) == null)
                    .toList();
        }

        /// Returns whether a server is gone that did not say so before, or two sides have met again.
        boolean isTrouble() {
            return merged || gone().stream().anyMatch(node -> node.state() != NodeState.DRAINING);
        }

        private List<NodeInfo> present(Predicate<NodeInfo> filter) {
            return after.nodes().stream()
                    .filter(node -> before.node(node.name()) != null)
                    .filter(filter)
                    .toList();
        }

        private boolean hasRestarted(NodeInfo node) {
            return Objects.requireNonNull(before.node(node.name())).incarnation() != node.incarnation();
        }

        private boolean hasChanged(NodeInfo node) {
            return !hasRestarted(node) && !node.equals(before.node(node.name()));
        }

        /// Returns whether nothing differs but what servers have dropped, which is no news for the log.
        boolean isOfDropsAlone() {
            return !merged && !before.nodes().isEmpty() && before.digest() == after.digest();
        }

        /// Returns the share of groups whose owner is another one, 0 to 1.
        ///
        /// A server keeps a group if it scores highest by both views. A score is weight over an exponential
        /// variate, so server `i` does with probability `1 / sum over j of max(w_j / w_i, v_j / v_i)`. Its
        /// weights are `w` before and `v` after, and 0 for servers that own nothing.
        double movedShare() {
            if (before.serving().isEmpty() || after.serving().isEmpty()) {
                return 0;
            }
            double kept = 0;
            for (NodeInfo node : after.serving()) {
                double weight = weight(before, node.name());
                if (weight > 0) {
                    kept += keptShare(weight, node.node().weight());
                }
            }
            return Math.max(0, 1 - kept);
        }

        private double keptShare(double weightBefore, double weightAfter) {
            double sum = 0;
            for (NodeInfo node : before.serving()) {
                ClusterNode other = node.node();
                sum += Math.max(other.weight() / weightBefore, weight(after, other.name()) / weightAfter);
            }
            for (NodeInfo node : after.serving()) {
                if (weight(before, node.name()) == 0) {
                    sum += node.node().weight() / weightAfter;
                }
            }
            return 1 / sum;
        }

        private static double weight(ClusterView view, String name) {
            NodeInfo node = view.node(name);
            return node == null || node.state() != NodeState.SERVING
                    ? 0
                    : node.node().weight();
        }

        /// The line of the log: `view 5: 4 serve, 1 joins (kv-3); came: kv-3; moved 20 % of groups`.
        @Override
        public String toString() {
            List<String> parts = new ArrayList<>();
            parts.add("view " + after.epoch() + ": " + states());
            add(parts, "came: ", came());
            add(parts, "gone: ", gone());
            add(parts, "restarted: ", present(this::hasRestarted));
            add(parts, "changed: ", present(this::hasChanged));
            if (merged) {
                parts.add("two sides of a partition met again, and forget values that may change");
            }
            double moved = 100 * movedShare();
            if (moved > 0.5e-6) {
                parts.add(
                        moved < 1
                                ? "moved less than 1 % of groups"
                                : "moved %s %% of groups".formatted(Math.round(moved)));
            }
            return String.join("; ", parts);
        }

        private String states() {
            String text = after.serving().size() + " serve";
            text += states(NodeState.JOINING, "joins", "join");
            return text + states(NodeState.DRAINING, "drains", "drain");
        }

        private String states(NodeState state, String one, String more) {
            List<NodeInfo> nodes =
                    after.nodes().stream().filter(node -> node.state() == state).toList();
            return nodes.isEmpty()
                    ? ""
                    : ", %s %s (%s)".formatted(nodes.size(), nodes.size() == 1 ? one : more, names(nodes));
        }

        private static void add(List<String> parts, String label, List<NodeInfo> nodes) {
            if (!nodes.isEmpty()) {
                parts.add(label + names(nodes));
            }
        }

        private static String names(List<NodeInfo> nodes) {
            return nodes.stream().map(NodeInfo::name).collect(Collectors.joining(", "));
        }
    }
}

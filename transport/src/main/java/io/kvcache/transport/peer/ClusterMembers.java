package io.kvcache.transport.peer;

import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.net.FailurePause;
import io.kvcache.transport.peer.Peer.RetiredPeers;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// Follows the view of a cluster, and keeps a connection to each of its servers.
///
/// One server at a time is asked for changes; when it fails, or does not answer, another one. If none answers, the
/// addresses that the
/// client was given are tried again.
///
/// A view that lacks a server which still answers may be that of a server that was cut off from the others. Then that
/// other server is asked too, and the view with more servers counts.
///
/// **Threads.** Any; one of the executor follows.
final class ClusterMembers implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(ClusterMembers.class.getName());

    /// How long a server waits for a change before it answers that there was none.
    private static final Duration WATCH = Duration.ofSeconds(5);

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    private final List<String> seeds;
    private final Function<String, ClusterConnection> connector;
    private final Executor connecting;
    private final Peer.BackoffSettings backoff;
    /// By address.
    private final Map<String, Peer> peers = new HashMap<>();
    private final RetiredPeers retired = new RetiredPeers();
    private volatile ClusterRoute route;
    private volatile boolean closed;

    /// @param seeds addresses of servers; the first that answers tells the view
    /// @param connector connects to an address
    /// @throws UncheckedIOException when none answers
    /// @throws IllegalStateException when the servers that answer are in no cluster
    ClusterMembers(
            List<String> seeds,
            Function<String, ClusterConnection> connector,
            Executor connecting,
            Peer.BackoffSettings backoff) {
        this.seeds = List.copyOf(seeds);
        this.connector = connector;
        this.connecting = connecting;
        this.backoff = backoff;
        route = routeOf(askSeeds());
    }

    /// Waits until each server is connected or has failed, but not longer than a time. Then begins to follow the view.
    void start(long connectNanos) {
        long until = backoff.clock().deadlineAfter(connectNanos);
        route.all().forEach(peer -> peer.awaitConnect(until));
        connecting.execute(this::follow);
    }

    /// The present route.
    ClusterRoute route() {
        return route;
    }

    private ClusterView askSeeds() {
        List<RuntimeException> failures = new ArrayList<>();
        for (String seed : seeds) {
            try (ClusterConnection connection = connector.apply(seed)) {
                ClusterView view = connection.view(0, Duration.ZERO);
                if (view != null) {
                    return view;
                }
            } catch (UncheckedIOException | IllegalStateException failed) {
                failures.add(failed);
            }
        }
        RuntimeException thrown = failures.stream()
                .filter(IllegalStateException.class::isInstance)
                .findFirst()
                .orElse(failures.getFirst());
        failures.stream().filter(each -> !each.equals(thrown)).forEach(thrown::addSuppressed);
        throw thrown;
    }

    /// Makes the route of a view, with connections to new servers. Those to servers that are gone are retired.
    private ClusterRoute routeOf(ClusterView view) {
        long now = backoff.clock().nanos();
        List<Peer> added = new ArrayList<>();
        ClusterRoute next;
        synchronized (this) {
            next = routeOf(view, now, added);
        }
        added.forEach(Peer::connect); // not under the lock, as that may wait for a thread
        return next;
    }

    /// @param added takes the connections that are new
    private ClusterRoute routeOf(ClusterView view, long now, List<Peer> added) {
        Map<String, Peer> before = new HashMap<>(peers);
        peers.clear();
        for (NodeInfo node : view.nodes()) {
            Peer peer = before.remove(node.address());
            if (peer == null) {
                peer = new Peer(node.address(), connector, backoff, connecting);
                added.add(peer);
            }
            peers.put(node.address(), peer);
        }
        before.values().forEach(peer -> retired.add(peer, now));
        retired.closeUnused(now);
        return new ClusterRoute(
                view,
                view.serving().stream().map(node -> peers.get(node.address())).toList(),
                List.copyOf(peers.values()));
    }

    private void follow() {
        while (!closed) {
            ClusterView now = route.view();
            try {
                ClusterView next = ask(now.digest());
                closeRetired();
                if (next != null) {
                    use(larger(next));
                } else {
                    pause(); // a server that goes down answers at once
                }
            } catch (UncheckedIOException | IllegalStateException unanswered) {
                LOG.log(System.Logger.Level.DEBUG, "no view", unanswered);
                pause();
            }
        }
    }

    private void closeRetired() {
        long now = backoff.clock().nanos();
        synchronized (this) {
            retired.closeUnused(now);
        }
    }

    private void pause() {
        long until = backoff.clock().deadlineAfter(RETRY_NANOS);
        try {
            synchronized (this) {
                if (!closed) {
                    backoff.clock().await(this, until);
                }
            }
        } catch (InterruptedException ended) {
            closed = true;
        }
    }

    private @Nullable ClusterView ask(long known) {
        for (Peer peer : route.all()) {
            ClusterConnection connection = peer.connectionIfUsable();
            if (connection != null) {
                FailurePause.Call begun = peer.beginCall();
                try {
                    return connection.view(known, WATCH);
                } catch (UncheckedIOException unanswered) {
                    if (!peer.isHeardSince(begun)) { // else it is busy, and those who read there see how it goes
                        peer.onFailure(); // a server that stands still keeps its connection
                    }
                    throw unanswered;
                }
            }
        }
        return askSeeds();
    }

    /// Returns a view, or a larger one of a server that it lacks.
    private ClusterView larger(ClusterView view) {
        ClusterView largest = view;
        for (NodeInfo node : route.view().nodes()) {
            Peer peer = view.node(node.name()) == null ? peer(node.address()) : null;
            ClusterConnection connection = peer == null ? null : peer.connectionIfUsable();
            ClusterView other = peer == null || connection == null ? null : viewOf(peer, connection);
            if (other != null && other.serving().size() > largest.serving().size()) {
                largest = other;
            }
        }
        return largest;
    }

    private static @Nullable ClusterView viewOf(Peer peer, ClusterConnection connection) {
        try {
            return connection.view(0, Duration.ZERO);
        } catch (UncheckedIOException unanswered) {
            peer.onFailure();
            return null;
        } catch (IllegalStateException inNoCluster) {
            return null;
        }
    }

    private synchronized @Nullable Peer peer(String address) {
        return peers.get(address);
    }

    private void use(ClusterView view) {
        if (view.digest() != route.view().digest()) {
            LOG.log(System.Logger.Level.INFO, view.toString());
            route = routeOf(view);
        } else {
            // The server that is asked has another view than the one that counts.
            pause();
        }
    }

    @Override
    public void close() {
        List<Peer> all;
        synchronized (this) {
            closed = true;
            backoff.clock().wake(this);
            all = new ArrayList<>(peers.values());
            retired.closeAll();
        }
        all.forEach(Peer::close);
    }
}

package io.kvcache.server.forward;

import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.ViewSource;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/// Connections to the other servers of a cluster, one for each tenant whose clients' requests are passed on.
///
/// A server that could not be connected to is not tried for a moment, as every request would wait for it.
///
/// **Threads.** Any.
public final class OwnerConnections implements AutoCloseable {

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(200);

    private final Connector connector;
    private final Runnable endListening;
    private final Map<Target, RemoteKvCache> connections = new ConcurrentHashMap<>();
    private final Map<Long, Long> failedUntil = new ConcurrentHashMap<>();
    private volatile boolean closed;

    /// Connects to another server.
    @FunctionalInterface
    public interface Connector {

        /// Connects.
        ///
        /// @param address of its transport
        /// @param tenant for whom requests are passed on
        /// @throws UncheckedIOException when it cannot be reached
        RemoteKvCache connect(String address, String tenant);
    }

    /// A process of a server, and a tenant.
    private record Target(String address, long incarnation, String tenant) {}

    /// A request was not sent.
    static final class NotConnectedException extends UncheckedIOException {

        private static final long serialVersionUID = 1L;

        NotConnectedException(String why) {
            super(new IOException(why));
        }
    }

    /// @param views connections to servers that are in none any more are closed
    public OwnerConnections(Connector connector, ViewSource views) {
        this.connector = connector;
        endListening = views.listen(this::onView);
    }

    /// Returns a connection. It may break at any time.
    ///
    /// @throws NotConnectedException when there is none
    RemoteKvCache to(NodeInfo server, String tenant) {
        Target target = new Target(server.address(), server.incarnation(), tenant);
        RemoteKvCache open = connections.get(target);
        if (open != null) {
            return open;
        }
        Long until = failedUntil.get(server.incarnation());
        if (closed || (until != null && System.nanoTime() - until < 0)) {
            throw new NotConnectedException("it was not reached a moment ago");
        }
        try {
            RemoteKvCache made = connector.connect(server.address(), tenant);
            RemoteKvCache other = connections.putIfAbsent(target, made);
            if (other != null || closed) {
                made.close();
            }
            return other == null ? made : other;
        } catch (UncheckedIOException failed) {
            failedUntil.put(server.incarnation(), System.nanoTime() + RETRY_NANOS);
            throw new NotConnectedException(String.valueOf(failed.getMessage()));
        }
    }

    private void onView(ClusterView view) {
        failedUntil.clear();
        connections.entrySet().removeIf(entry -> {
            Target target = entry.getKey();
            boolean gone = view.nodes().stream()
                    .noneMatch(
                            node -> node.address().equals(target.address) && node.incarnation() == target.incarnation);
            if (gone) {
                Thread.startVirtualThread(entry.getValue()::close); // it may wait for a reply
            }
            return gone;
        });
    }

    @Override
    public void close() {
        closed = true;
        endListening.run();
        connections.values().forEach(RemoteKvCache::close);
        connections.clear();
    }
}

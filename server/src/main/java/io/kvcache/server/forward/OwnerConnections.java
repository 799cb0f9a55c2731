package io.kvcache.server.forward;

import io.kvcache.transport.client.CommandReply;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.ViewSource;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/// Connections to the other servers of a cluster, one for each tenant whose clients' requests are passed on.
///
/// A server that could not be connected to, or did not answer, is not tried for a moment, as every request would wait
/// for it. Writes that wait for an owner anyway try one that did not answer all the same.
///
/// **Threads.** Any.
public final class OwnerConnections implements AutoCloseable {

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(200);
    private static final long MAX_AVOID_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final int WAIT_FACTOR = 4;

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

    /// Passes a request on.
    ///
    /// @throws NotConnectedException when it was not sent
    /// @throws UncheckedIOException when there is no reply. Then the server is not used for longer than the request
    ///     has waited
    CommandReply execute(NodeInfo server, RequestForwarder.Request request, Duration timeout) {
        RemoteKvCache connection = to(server, request);
        long start = System.nanoTime();
        try {
            return connection.execute(request.dialect().code(), request.bytes(), timeout);
        } catch (UncheckedIOException unanswered) {
            long now = System.nanoTime();
            avoid(server, Math.clamp(WAIT_FACTOR * (now - start), RETRY_NANOS, MAX_AVOID_NANOS));
            throw unanswered;
        }
    }

    /// Why something failed, without the name of a class.
    static String reason(UncheckedIOException failed) {
        Throwable cause = failed.getCause();
        return String.valueOf(cause == null ? failed.getMessage() : cause.getMessage());
    }

    private void avoid(NodeInfo server, long nanos) {
        failedUntil.put(server.incarnation(), System.nanoTime() + nanos);
    }

    private RemoteKvCache to(NodeInfo server, RequestForwarder.Request request) {
        Target target = new Target(server.address(), server.incarnation(), request.tenant());
        RemoteKvCache open = connections.get(target);
        Long until = failedUntil.get(server.incarnation());
        boolean avoided = until != null && System.nanoTime() - until < 0;
        if (closed || (avoided && (open == null || !request.kind().waitsForOwner()))) {
            throw new NotConnectedException("it did not answer a moment ago");
        }
        if (open != null) {
            return open;
        }
        try {
            RemoteKvCache made = connector.connect(server.address(), request.tenant());
            RemoteKvCache other = connections.putIfAbsent(target, made);
            if (other != null || closed) {
                made.close();
            }
            return other == null ? made : other;
        } catch (UncheckedIOException failed) {
            avoid(server, RETRY_NANOS);
            throw new NotConnectedException(reason(failed));
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

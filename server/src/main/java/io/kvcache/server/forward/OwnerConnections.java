package io.kvcache.server.forward;

import io.kvcache.transport.client.CommandReply;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.ViewSource;
import io.kvcache.transport.net.FailurePause;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Connections to the other servers of a cluster, one for each tenant whose clients' requests are passed on.
///
/// A server that could not be connected to, or did not answer, is not tried for a while ([FailurePause]), as every
/// request would wait for it, but only until it is heard again. Writes that wait for an owner anyway try one that did
/// not answer all the same.
///
/// **Threads.** Any.
public final class OwnerConnections implements AutoCloseable {

    private static final long MAX_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(10);

    private final Connector connector;
    private final Runnable endListening;
    private final Map<Target, Link> links = new ConcurrentHashMap<>();
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

    /// The connection to a server, if there is one, and its failures.
    private static final class Link {

        private final FailurePause pause = new FailurePause(MAX_PAUSE_NANOS);
        private volatile @Nullable RemoteKvCache connection;

        private long lifeSigns() {
            RemoteKvCache open = connection;
            return open == null ? 0 : open.lifeSigns();
        }

        boolean isPaused() {
            return pause.isActive(System.nanoTime(), lifeSigns());
        }

        FailurePause.Call beginCall() {
            return new FailurePause.Call(System.nanoTime(), lifeSigns());
        }

        void onFailure(FailurePause.Call call) {
            pause.onFailure(call, System.nanoTime(), lifeSigns());
            RemoteKvCache open = connection;
            if (open != null) {
                open.requestLifeSign();
            }
        }

        void close() {
            RemoteKvCache open = connection;
            if (open != null) {
                open.close();
            }
        }
    }

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
    /// @throws UncheckedIOException when there is no reply
    CommandReply execute(NodeInfo server, RequestForwarder.Request request, Duration timeout) {
        Target target = new Target(server.address(), server.incarnation(), request.tenant());
        Link link = links.computeIfAbsent(target, _ -> new Link());
        RemoteKvCache connection = connect(target, link, request.kind().waitsForOwner());
        FailurePause.Call call = link.beginCall();
        try {
            CommandReply reply = connection.execute(request.dialect().code(), request.bytes(), timeout);
            link.pause.onSuccess();
            return reply;
        } catch (UncheckedIOException unanswered) {
            link.onFailure(call);
            throw unanswered;
        }
    }

    /// Why something failed, without the name of a class.
    static String reason(UncheckedIOException failed) {
        Throwable cause = failed.getCause();
        return String.valueOf(cause == null ? failed.getMessage() : cause.getMessage());
    }

    /// @param anyway whether a connection is used although the server has just failed
    private RemoteKvCache connect(Target target, Link link, boolean anyway) {
        RemoteKvCache open = link.connection;
        if (closed || (link.isPaused() && (open == null || !anyway))) {
            throw new NotConnectedException("it did not answer a moment ago");
        }
        return open == null ? connect(target, link) : open;
    }

    private RemoteKvCache connect(Target target, Link link) {
        FailurePause.Call call = link.beginCall();
        RemoteKvCache made;
        try {
            made = connector.connect(target.address, target.tenant);
        } catch (UncheckedIOException failed) {
            link.onFailure(call);
            throw new NotConnectedException(reason(failed));
        }
        RemoteKvCache other;
        synchronized (link) {
            other = link.connection;
            if (other == null) {
                link.connection = made;
            }
        }
        // Looked at behind the assignment: a view or #close that takes the link out closes what it has by then.
        if (other != null || closed || links.get(target) != link) {
            made.close();
        }
        return other == null ? made : other;
    }

    private void onView(ClusterView view) {
        links.entrySet().removeIf(entry -> {
            entry.getValue().pause.onSuccess(); // the view has heard of each server
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
        links.values().forEach(Link::close);
        links.clear();
    }
}

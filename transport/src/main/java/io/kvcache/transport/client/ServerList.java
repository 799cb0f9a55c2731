package io.kvcache.transport.client;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteKvCacheBuilder.RemoteOptions;
import io.kvcache.transport.client.RpcClient.RpcException;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.shm.SharedStore.OneSidedCounters;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Collection;
import java.util.List;

/// The servers of one cache, the first choice first, and how a session with one begins.
///
/// **Threads.** Any.
final class ServerList {

    private static final System.Logger LOG = System.getLogger(ServerList.class.getName());

    private final List<Server> servers;
    private final OneSidedCounters counters;
    private final CallTimeouts callTimeouts;

    /// One of the servers.
    ///
    /// @param name its address
    /// @param connectors what opens connections
    /// @param invalidate what was chosen leads nowhere
    record Server(String name, ConnectorSource connectors, Runnable invalidate, RemoteOptions options) {

        /// Returns a server with a fixed connector.
        static Server of(Connector connector, RemoteOptions options) {
            TransportSelector.SelectedTransport selected =
                    new TransportSelector.SelectedTransport(connector, connector.toString());
            return new Server(connector.toString(), (_, _) -> selected, () -> {}, options);
        }

        /// Returns a server whose transport is chosen when a session begins.
        static Server of(TransportSelector selector, RemoteOptions options) {
            return new Server(selector.toString(), selector::select, selector::invalidate, options);
        }
    }

    /// Supplies the connector of a session.
    @FunctionalInterface
    interface ConnectorSource {
        TransportSelector.SelectedTransport select(RemoteOptions options, CallTimeouts callTimeouts)
                throws IOException, RpcException;
    }

    /// State that a new session starts from.
    ///
    /// @param registered namespaces that it is to know
    /// @param previousSessions sessions of this cache before it
    /// @param ended hears that it is over, once or more
    record SessionStart(Collection<Namespace> registered, long previousSessions, Runnable ended) {}

    /// @param ways at least one
    ServerList(List<Server> ways, OneSidedCounters counters, CallTimeouts callTimeouts) {
        this.servers = ways;
        this.counters = counters;
        this.callTimeouts = callTimeouts;
    }

    int size() {
        return servers.size();
    }

    String name(int way) {
        return servers.get(way).name;
    }

    /// Begins a session after one was lost. If the server rejects a namespace, its blocks are misses.
    ///
    /// @throws UncheckedIOException when it cannot be reached, or does not want this client
    RemoteSession connect(int way, SessionStart start) {
        return connect(way, start, ServerList::reregister);
    }

    /// Begins a session while another one works. It must have all namespaces.
    ///
    /// @throws UncheckedIOException when it cannot be reached, or does not want this client, or one
    ///     of its namespaces
    RemoteSession connectStrict(int way, SessionStart start) {
        return connect(way, start, RemoteSession::register);
    }

    /// Registers one namespace.
    @FunctionalInterface
    private interface NamespaceRegistrar {
        void register(RemoteSession session, Namespace namespace) throws RpcException;
    }

    private RemoteSession connect(int way, SessionStart start, NamespaceRegistrar registrar) {
        Server to = servers.get(way);
        try {
            TransportSelector.SelectedTransport by = to.connectors.select(to.options, callTimeouts);
            RemoteSession.SessionSettings settings =
                    new RemoteSession.SessionSettings(to.options, counters, start.previousSessions, by.reason());
            RemoteSession session = open(to, by.connector(), settings, start);
            registerAll(session, start.registered, registrar);
            return session;
        } catch (IOException unreachable) {
            throw new UncheckedIOException("cannot reach " + to.name + ": " + unreachable.getMessage(), unreachable);
        } catch (RpcException refused) {
            throw new UncheckedIOException(
                    to.name + " refuses: " + refused.getMessage(), new IOException(String.valueOf(refused.status())));
        }
    }

    private RemoteSession open(Server to, Connector by, RemoteSession.SessionSettings settings, SessionStart start)
            throws IOException, RpcException {
        try {
            return RemoteSession.open(by, settings, callTimeouts, start.ended);
        } catch (IOException | RpcException failed) {
            to.invalidate.run();
            throw failed;
        }
    }

    private static void registerAll(
            RemoteSession session, Collection<Namespace> registered, NamespaceRegistrar registrar) throws RpcException {
        boolean good = false;
        try {
            session.mapSharedMemory();
            session.connectFabric();
            for (Namespace namespace : registered) {
                registrar.register(session, namespace);
            }
            good = true;
        } finally {
            if (!good) {
                session.close(DisconnectReason.SHUTDOWN);
            }
        }
    }

    private static void reregister(RemoteSession session, Namespace namespace) throws RpcException {
        try {
            session.register(namespace);
        } catch (RpcException failed) {
            if (!failed.hasReply()) {
                throw failed;
            }
            LOG.log(System.Logger.Level.WARNING, namespace + " is refused after a reconnect: " + failed.getMessage());
        }
    }
}

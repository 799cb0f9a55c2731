package io.kvcache.transport.remote;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.link.Connector;
import io.kvcache.transport.link.DisconnectReason;
import io.kvcache.transport.shm.OneSidedCounters;
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

        /// By what opens connections.
        static Server of(Connector connector, RemoteOptions options) {
            TransportSelector.SelectedTransport selectedTransport =
                    new TransportSelector.SelectedTransport(connector, connector.toString());
            return new Server(connector.toString(), (_, _) -> selectedTransport, () -> {}, options);
        }

        /// By what is chosen when a session begins.
        static Server of(TransportSelector transportSelector, RemoteOptions options) {
            return new Server(
                    transportSelector.toString(), transportSelector::select, transportSelector::invalidate, options);
        }
    }

    /// Says what opens connections.
    @FunctionalInterface
    interface ConnectorSource {
        TransportSelector.SelectedTransport select(RemoteOptions options, CallTimeouts callTimeouts)
                throws IOException, RpcException;
    }

    /// What a session begins with.
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

    /// Begins a session in place of one that is lost. A namespace that the server refuses is a miss
    /// there.
    ///
    /// @throws UncheckedIOException when it cannot be reached, or does not want this client
    RemoteSession connect(int way, SessionStart sessionStart) {
        return connect(way, sessionStart, ServerList::reregister);
    }

    /// Begins a session in place of one that is as it should be.
    ///
    /// @throws UncheckedIOException when it cannot be reached, or does not want this client, or one
    ///     of its namespaces
    RemoteSession connectStrict(int way, SessionStart sessionStart) {
        return connect(way, sessionStart, RemoteSession::register);
    }

    /// Makes one namespace known.
    @FunctionalInterface
    private interface NamespaceRegistrar {
        void register(RemoteSession remoteSession, Namespace namespace) throws RpcException;
    }

    private RemoteSession connect(int way, SessionStart sessionStart, NamespaceRegistrar namespaceRegistrar) {
        Server to = servers.get(way);
        try {
            TransportSelector.SelectedTransport by = to.connectors.select(to.options, callTimeouts);
            RemoteSession.SessionSettings sessionSettings =
                    new RemoteSession.SessionSettings(to.options, counters, sessionStart.previousSessions, by.reason());
            RemoteSession remoteSession = open(to, by.connector(), sessionSettings, sessionStart);
            registerAll(remoteSession, sessionStart.registered, namespaceRegistrar);
            return remoteSession;
        } catch (IOException unreachable) {
            throw new UncheckedIOException("cannot reach " + to.name + ": " + unreachable.getMessage(), unreachable);
        } catch (RpcException refused) {
            throw new UncheckedIOException(
                    to.name + " refuses: " + refused.getMessage(), new IOException(String.valueOf(refused.status())));
        }
    }

    private RemoteSession open(
            Server to, Connector by, RemoteSession.SessionSettings sessionSettings, SessionStart sessionStart)
            throws IOException, RpcException {
        try {
            return RemoteSession.open(by, sessionSettings, callTimeouts, sessionStart.ended);
        } catch (IOException | RpcException failed) {
            to.invalidate.run();
            throw failed;
        }
    }

    private static void registerAll(
            RemoteSession remoteSession, Collection<Namespace> registered, NamespaceRegistrar namespaceRegistrar)
            throws RpcException {
        boolean good = false;
        try {
            remoteSession.mapSharedMemory();
            remoteSession.connectFabric();
            for (Namespace namespace : registered) {
                namespaceRegistrar.register(remoteSession, namespace);
            }
            good = true;
        } finally {
            if (!good) {
                remoteSession.close(DisconnectReason.SHUTDOWN);
            }
        }
    }

    private static void reregister(RemoteSession remoteSession, Namespace namespace) throws RpcException {
        try {
            remoteSession.register(namespace);
        } catch (RpcException failed) {
            if (!failed.hasReply()) {
                throw failed;
            }
            LOG.log(System.Logger.Level.WARNING, namespace + " is refused after a reconnect: " + failed.getMessage());
        }
    }
}

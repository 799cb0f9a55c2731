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
    /// @param connector opens connections; its text is the server's address
    record Server(Connector connector, RemoteOptions options) {

        String name() {
            return connector.toString();
        }
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
        return servers.get(way).name();
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
            RemoteSession.SessionSettings settings =
                    new RemoteSession.SessionSettings(to.options, counters, start.previousSessions);
            RemoteSession session = RemoteSession.open(to.connector, settings, callTimeouts, start.ended);
            registerAll(session, start.registered, registrar);
            return session;
        } catch (IOException unreachable) {
            throw new UncheckedIOException("cannot reach " + to.name() + ": " + unreachable.getMessage(), unreachable);
        } catch (RpcException refused) {
            throw new UncheckedIOException(
                    to.name() + " refuses: " + refused.getMessage(), new IOException(String.valueOf(refused.status())));
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

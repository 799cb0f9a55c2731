package io.kvcache.transport.sim;

import io.kvcache.transport.endpoint.Endpoint;
import io.kvcache.transport.net.Connector;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.net.FrameConnection;
import io.kvcache.transport.net.FrameHandler;
import java.io.IOException;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Hosts that serve endpoints, and ways between them that can be cut.
///
/// **Threads.** Any. Each connection that a host has is pumped by a thread, as with TCP.
final class SimNetwork implements AutoCloseable {

    private static final long TICK_NANOS = 10_000_000;

    private final NetworkFaults networkFaults;
    private final Map<String, Host> hosts = new ConcurrentHashMap<>();
    private final Map<String, NetworkPath> ways = new ConcurrentHashMap<>();
    private final Queue<Throwable> bugs = new ConcurrentLinkedQueue<>();
    private final Queue<SimConnection> lines = new ConcurrentLinkedQueue<>();
    private final AtomicInteger opened = new AtomicInteger();
    private volatile boolean closed;

    SimNetwork(NetworkFaults networkFaults) {
        this.networkFaults = networkFaults;
        Thread.ofPlatform().daemon().name("sim-tick").start(this::tick);
    }

    /// One direction between two places.
    static final class NetworkPath {

        private volatile boolean cut;

        /// Nothing arrives until it is mended, and nobody is told.
        void cut(boolean value) {
            cut = value;
        }

        boolean cut() {
            return cut;
        }
    }

    /// A place that serves.
    private record Host(Endpoint endpoint, long stallNanos, Set<SimConnection> lines) {}

    /// The way from one place to another.
    NetworkPath way(String from, String to) {
        return ways.computeIfAbsent(from + " " + to, none -> new NetworkPath());
    }

    /// A place begins to serve.
    void serve(String name, Endpoint endpoint, long stallNanos) {
        hosts.put(name, new Host(endpoint, stallNanos, ConcurrentHashMap.newKeySet()));
    }

    /// A place is gone, with its connections; what the endpoint held goes back to its store.
    void stop(String name) {
        Host host = hosts.remove(name);
        if (host != null) {
            host.endpoint.close();
            host.lines.forEach(line -> line.close(DisconnectReason.SHUTDOWN));
        }
    }

    /// How a place connects to another.
    Connector connector(String from, String to) {
        return new Connector() {
            @Override
            public FrameConnection connect(FrameHandler handler, long timeoutNanos) throws IOException {
                return SimNetwork.this.connect(from, to, handler, timeoutNanos);
            }

            @Override
            public String toString() {
                return to;
            }
        };
    }

    private FrameConnection connect(String from, String to, FrameHandler handler, long timeoutNanos)
            throws IOException {
        NetworkPath there = way(from, to);
        NetworkPath back = way(to, from);
        long start = System.nanoTime();
        while (there.cut || back.cut) {
            if (System.nanoTime() - start > timeoutNanos) {
                networkFaults.counts().refused.increment();
                networkFaults.journal().note(from + " gets no answer from " + to);
                throw new IOException("no answer from " + to);
            }
            LockSupport.parkNanos(1_000_000);
        }
        Host host = hosts.get(to);
        if (host == null) {
            networkFaults.counts().refused.increment();
            networkFaults.journal().note(from + " finds nobody at " + to);
            throw new IOException("nobody at " + to);
        }
        SimPipe[] pipes = networkFaults.connection(there, back);
        String name = from + " and " + to + ", connection " + opened.incrementAndGet();
        networkFaults.journal().note(name + " is open");
        SimConnection client = new SimConnection(pipes[1], pipes[0], frameSink -> handler, told(name + ", client"));
        lines.add(client);
        accept(host, new SimConnection(pipes[0], pipes[1], host.endpoint::onConnected, told(name + ", server")));
        return client;
    }

    private SimConnection.ConnectionLog told(String name) {
        return new SimConnection.ConnectionLog(name, networkFaults.journal(), bugs);
    }

    private void accept(Host host, SimConnection line) {
        host.lines.add(line);
        lines.add(line);
        Thread.ofPlatform().daemon().name("sim-connection").start(() -> {
            boolean open = true;
            while (open) {
                open = line.pump();
            }
            host.lines.remove(line);
        });
    }

    private void tick() {
        while (!closed) {
            LockSupport.parkNanos(TICK_NANOS);
            for (Host host : hosts.values()) {
                host.endpoint.tick();
                for (SimConnection line : host.lines) {
                    if (line.stalledNanos() > host.stallNanos) {
                        line.close(DisconnectReason.STALLED);
                    }
                }
            }
        }
    }

    /// What nobody expected to be thrown.
    Queue<Throwable> bugs() {
        return bugs;
    }

    /// The endpoint that serves at a place, if any does.
    @Nullable
    Endpoint endpoint(String name) {
        Host host = hosts.get(name);
        return host == null ? null : host.endpoint;
    }

    /// Where all of it stands: who serves, which ways are cut, which connections are open.
    @Override
    public String toString() {
        String cut = ways.entrySet().stream()
                .filter(each -> each.getValue().cut)
                .map(Map.Entry::getKey)
                .sorted()
                .collect(Collectors.joining(", "));
        String open = lines.stream()
                .filter(SimConnection::isOpen)
                .map(line -> "\n    " + line)
                .collect(Collectors.joining());
        return "served by " + hosts.keySet() + ", ways cut: [" + cut + "], bugs: " + bugs + ", sides open:" + open;
    }

    @Override
    public void close() {
        closed = true;
        hosts.keySet().forEach(this::stop);
    }
}

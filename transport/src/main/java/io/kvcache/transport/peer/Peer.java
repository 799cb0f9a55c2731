package io.kvcache.transport.peer;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.net.FailurePause;
import io.kvcache.transport.peer.GroupHeat.DecayingSum;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/// One peer. It is connected at its first use, and after a failure not used for a back-off that grows with each
/// failure.
///
/// **Threads.** Any. The executor connects. Callers wait only for the registration of a namespace at its first
/// use, and in [#awaitCacheFor] for the first connection.
final class Peer implements AutoCloseable {

    private static final System.Logger LOG = System.getLogger(Peer.class.getName());

    private final String name;
    private final Function<String, ClusterConnection> connector;
    private final BackoffSettings backoffSettings;
    private final Executor connecting;
    private final AtomicBoolean connectInProgress = new AtomicBoolean();
    private final Map<Namespace, Boolean> registered = new ConcurrentHashMap<>();
    private volatile @Nullable ClusterConnection cache;
    private volatile boolean closed;

    private final FailurePause failurePause;
    final LongAdder failures = new LongAdder();

    /// What this process reads there as a client of the cluster.
    final ReadLoad readLoad = new ReadLoad();

    /// Back-off after a failure.
    record BackoffSettings(PeerClock clock, long maxBackoffNanos) {}

    /// @param connector opens a cache by the peer's name; throws UncheckedIOException when it cannot be
    ///     reached
    Peer(
            String name,
            Function<String, ClusterConnection> connector,
            BackoffSettings backoffSettings,
            Executor connecting) {
        this.name = name;
        this.connector = connector;
        this.backoffSettings = backoffSettings;
        failurePause = new FailurePause(backoffSettings.maxBackoffNanos);
        this.connecting = connecting;
    }

    String name() {
        return name;
    }

    /// Returns the peer's cache, or null if it cannot serve a namespace now.
    @Nullable
    ClusterConnection cacheFor(Namespace namespace) {
        ClusterConnection now = connectionIfUsable();
        if (now == null) {
            return null;
        }
        Boolean taken = registered.get(namespace);
        if (taken == null) {
            taken = register(now, namespace);
        }
        return taken ? now : null;
    }

    /// Returns the peer's cache like [#cacheFor]. While the peer is being connected for the first time, or again
    /// after it could not be reached, waits for that.
    ///
    /// @param untilNanos moment of the clock after which it does not wait
    @Nullable
    ClusterConnection awaitCacheFor(Namespace namespace, long untilNanos) {
        if (cache == null && !closed && !isBackingOff()) {
            connect();
            awaitConnect(untilNanos);
        }
        return cacheFor(namespace);
    }

    /// Returns the peer's cache even during a back-off, or null if it was never connected.
    @Nullable
    ClusterConnection connection() {
        return cache;
    }

    /// Returns the peer's cache if it is connected and has not just failed. Otherwise returns null, and begins to
    /// connect if it has no connection yet.
    @Nullable
    ClusterConnection connectionIfUsable() {
        ClusterConnection now = cache;
        if (closed || isBackingOff()) {
            return null;
        }
        if (now == null) {
            connect();
        }
        return now != null && now.isConnected() ? now : null; // a lost connection comes back by itself
    }

    /// Waits while the peer is being connected.
    ///
    /// @param untilNanos moment of the clock after which it does not wait
    void awaitConnect(long untilNanos) {
        try {
            boolean late = false;
            while (connectInProgress.get() && !late) {
                synchronized (this) {
                    if (connectInProgress.get()) {
                        backoffSettings.clock.await(this, untilNanos);
                    }
                }
                late = untilNanos - backoffSettings.clock.nanos() <= 0;
            }
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }

    private boolean register(ClusterConnection at, Namespace namespace) {
        try {
            at.register(namespace);
            registered.put(namespace, true);
            return true;
        } catch (IllegalArgumentException refused) {
            registered.put(namespace, false);
            LOG.log(System.Logger.Level.WARNING, "peer " + name + " refuses " + namespace + ": " + refused);
            return false;
        } catch (UncheckedIOException unanswered) {
            onFailure();
            return false;
        }
    }

    private boolean isBackingOff() {
        return failurePause.isActive(nanos(), lifeSigns());
    }

    private long lifeSigns() {
        ClusterConnection now = cache;
        return now == null ? 0 : now.lifeSigns();
    }

    /// Begins to connect, unless it is connected or connecting already.
    void connect() {
        if (!connectInProgress.compareAndSet(false, true)) {
            return;
        }
        try {
            connecting.execute(this::connectNow);
        } catch (RejectedExecutionException closing) {
            connectInProgress.set(false);
        }
    }

    /// A thread that saw no cache may run this after another thread has connected. The peer keeps that one cache,
    /// as `registered` is about it.
    private void connectNow() {
        try {
            if (cache != null || closed) {
                return;
            }
            cache = connector.apply(name);
            onSuccess();
            if (closed) {
                close();
            }
        } catch (UncheckedIOException unreachable) {
            LOG.log(System.Logger.Level.DEBUG, "no connection to peer " + name, unreachable);
            onFailure();
        } catch (RuntimeException refused) {
            LOG.log(System.Logger.Level.WARNING, "no connection to peer " + name, refused);
            onFailure();
        } finally {
            synchronized (this) {
                connectInProgress.set(false);
                backoffSettings.clock.wake(this);
            }
        }
    }

    /// Ends the back-off after a successful call.
    void onSuccess() {
        failurePause.onSuccess();
    }

    /// A call of this peer that begins now.
    FailurePause.Call beginCall() {
        return new FailurePause.Call(nanos(), lifeSigns());
    }

    /// Returns whether the peer was heard since a call has begun.
    boolean isHeardSince(FailurePause.Call call) {
        return isConnected() && lifeSigns() != call.lifeSigns();
    }

    /// Begins or extends the back-off after a failure.
    void onFailure() {
        onFailure(beginCall());
    }

    /// Begins or extends the back-off after a call that failed.
    void onFailure(FailurePause.Call call) {
        if (Thread.currentThread().isInterrupted()) {
            return; // the caller gave up, and the peer has not failed
        }
        if (closed) {
            return; // so its connection is too, which ends the calls on their way
        }
        failures.increment();
        long pause = failurePause.onFailure(call, nanos(), lifeSigns());
        if (pause > 0) {
            LOG.log(
                    System.Logger.Level.INFO,
                    "peer " + name + " failed and is not used for " + pause / 1_000_000 + " ms, or until it is heard");
        }
        ClusterConnection now = cache;
        if (now != null) {
            now.requestLifeSign();
        }
    }

    /// The moment, by the clock of back-offs.
    private long nanos() {
        return backoffSettings.clock.nanos();
    }

    boolean isConnected() {
        ClusterConnection now = cache;
        return now != null && !closed && now.isConnected();
    }

    @Override
    public void close() {
        closed = true;
        ClusterConnection was = takeCache();
        if (was != null) {
            was.close();
        }
    }

    /// Removes and returns the cache, for the caller to close.
    private synchronized @Nullable ClusterConnection takeCache() {
        ClusterConnection now = cache;
        cache = null;
        return now;
    }

    /// What this process reads at one server.
    ///
    /// **Threads.** Any.
    static final class ReadLoad {

        private final AtomicLong underWay = new AtomicLong();
        private final DecayingSum recent = new DecayingSum();

        /// Begins to read up to the given number of bytes.
        void begin(long bytes) {
            underWay.addAndGet(bytes);
        }

        /// Ends what was begun.
        ///
        /// @param wanted bytes, as at the begin
        /// @param found bytes that came
        void end(long wanted, long found, long nowNanos) {
            underWay.addAndGet(-wanted);
            recent.add(found, nowNanos);
        }

        /// Returns whether there are fewer bytes under way than at another server; if these are equal, whether
        /// fewer bytes were read lately.
        boolean isBelow(ReadLoad other, long nowNanos) {
            long mine = underWay.get();
            long others = other.underWay.get();
            return mine == others ? recent.value(nowNanos) < other.recent.value(nowNanos) : mine < others;
        }
    }

    /// Connections to servers that are gone from the view. Calls that began before may still use them, so they
    /// are closed a minute later at the earliest.
    ///
    /// **Threads.** To be used under a lock of the owner's.
    static final class RetiredPeers {

        private static final long KEPT_NANOS = TimeUnit.MINUTES.toNanos(1);

        private final List<Retired> retired = new ArrayList<>();

        private record Retired(Peer peer, long sinceNanos) {}

        void add(Peer peer, long nowNanos) {
            retired.add(new Retired(peer, nowNanos));
        }

        /// Closes those that nothing uses any more.
        void closeUnused(long nowNanos) {
            retired.removeIf(each -> {
                ClusterConnection connection = each.peer.connection();
                boolean unused = nowNanos - each.sinceNanos > KEPT_NANOS
                        && (connection == null || !connection.isConnected() || connection.openHandles() == 0);
                if (unused) {
                    each.peer.close();
                }
                return unused;
            });
        }

        void closeAll() {
            retired.forEach(each -> each.peer.close());
            retired.clear();
        }
    }
}

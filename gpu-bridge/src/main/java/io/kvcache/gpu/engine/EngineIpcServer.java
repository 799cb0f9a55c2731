package io.kvcache.gpu.engine;

import io.kvcache.core.DeviceSupport;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.identity.Namespace;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.engine.TransferQueue.EngineCopyThreshold;
import io.kvcache.gpu.tier.CudaTier;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Serves blocks to engines in other processes of this machine, at a unix socket.
///
/// An engine names its pool in the memory of the same device, by tokens or descriptors, and then asks
/// for blocks to be copied to pages of it, or from them, each after an event of its own; the copies are
/// followed by an event of ours that the engine waits for. Pages are checked against the pool before
/// anything is begun. ENGINES.md has the messages.
///
/// Small pieces, of 4 to 64 KiB by what is measured with the first engine that has such, go whole
/// blocks at a time by way of memory of ours on the device, where a kernel of a few groups moves
/// them: 17 MiB for an engine; blocks of more than 4 MiB go that way in parts. All others are
/// copied as they are, and so is what finds no room there: a request of more than 16384 pieces, or
/// one behind four that have not ended.
///
/// Every engine has a thread and a [DeviceDriver] of its own. One that dies leaves nothing: what it was
/// loading goes on to its end, what it was storing and has not sealed is thrown away, and its memory is
/// closed once nothing is on its way there. Only where copies do not end within a minute, or a
/// session does not come back before [#close] gives up, what they use is kept for good, and the log
/// says so. Room that it was given of the tier and has not returned goes back to the tier then.
///
/// **Security.** A process that may open the socket may read and write the namespaces that are served. The socket
/// has mode 0600.
///
/// **Threads.** Any.
public final class EngineIpcServer implements DeviceSupport.EngineListener {

    private static final Logger LOG = System.getLogger(EngineIpcServer.class.getName());
    private static final int MAX_ENGINES = 64;
    private static final int POLL_MILLIS = 100;
    private static final long MAX_DRAIN_NANOS = TimeUnit.SECONDS.toNanos(60);

    /// A drain, and what a session may be at before.
    private static final long MAX_CLOSE_NANOS = MAX_DRAIN_NANOS + TimeUnit.SECONDS.toNanos(30);

    private final LocalKvCache cache;
    private final @Nullable ServedTier tier;
    private final Supplier<DeviceDriver> drivers;
    private final Function<String, @Nullable Namespace> namespaces;
    private final EngineCopyThreshold threshold;
    private final Path path;
    private final UnixSocket listening;
    private final Set<UnixSocket> engines = ConcurrentHashMap.newKeySet();
    private final Set<Thread> threads = ConcurrentHashMap.newKeySet();
    private final Thread accepting;
    private volatile boolean closing;

    private EngineIpcServer(
            LocalKvCache cache,
            @Nullable ServedTier tier,
            Supplier<DeviceDriver> drivers,
            Function<String, @Nullable Namespace> namespaces,
            EngineCopyThreshold threshold,
            Path path,
            UnixSocket listening) {
        this.cache = cache;
        this.tier = tier;
        this.drivers = drivers;
        this.namespaces = namespaces;
        this.threshold = threshold;
        this.path = path;
        this.listening = listening;
        accepting = Thread.ofPlatform().daemon(true).name("kvcache-engines").unstarted(this::accept);
    }

    /// Lets engines in.
    ///
    /// @param cache stays the caller's, and is closed after this
    /// @param tier of the cache, in the memory of the drivers' device: blocks that lie there are copied within the
    ///     device; null for none
    /// @param drivers opens the device, anew for each engine
    /// @param namespaces what engines may ask for, by the name they ask by; each of one part
    /// @param path of the socket; must not be there yet
    /// @throws UncheckedIOException when the socket cannot be made
    public static EngineIpcServer open(
            LocalKvCache cache,
            @Nullable CudaTier tier,
            Supplier<DeviceDriver> drivers,
            Map<String, Namespace> namespaces,
            Path path) {
        return open(cache, tier, drivers, namespaces, path, new EngineCopyThreshold());
    }

    /// The same, with namespaces that come and go, and a tier whose size others change too.
    ///
    /// @param namespaces finds a registered namespace of one part by the name that an engine asks by, or null
    /// @throws UncheckedIOException when the socket cannot be made
    public static EngineIpcServer open(
            LocalKvCache cache,
            @Nullable ServedTier tier,
            Supplier<DeviceDriver> drivers,
            Function<String, @Nullable Namespace> namespaces,
            Path path) {
        return open(cache, tier, drivers, namespaces, path, new EngineCopyThreshold());
    }

    /// The same, with what is known of the device.
    static EngineIpcServer open(
            LocalKvCache cache,
            @Nullable CudaTier tier,
            Supplier<DeviceDriver> drivers,
            Map<String, Namespace> namespaces,
            Path path,
            EngineCopyThreshold threshold) {
        namespaces.values().forEach(cache::register);
        Map<String, Namespace> served = Map.copyOf(namespaces);
        return open(cache, tier == null ? null : new ServedTier(tier), drivers, served::get, path, threshold);
    }

    private static EngineIpcServer open(
            LocalKvCache cache,
            @Nullable ServedTier tier,
            Supplier<DeviceDriver> drivers,
            Function<String, @Nullable Namespace> namespaces,
            Path path,
            EngineCopyThreshold threshold) {
        UnixSocket socket = null;
        try {
            socket = UnixSocket.bind(path);
            Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
            socket.listen();
        } catch (IOException refused) {
            if (socket != null) {
                socket.close();
            }
            throw new UncheckedIOException("engines cannot be let in at " + path, refused);
        }
        EngineIpcServer door = new EngineIpcServer(cache, tier, drivers, namespaces, threshold, path, socket);
        door.accepting.start();
        return door;
    }

    @Override
    public int engineCount() {
        return engines.size();
    }

    private void accept() {
        boolean said = false;
        while (!closing) {
            try {
                UnixSocket engine = listening.accept(POLL_MILLIS);
                if (engine != null) {
                    said = false;
                    startSession(engine);
                }
            } catch (IOException refused) {
                if (closing) {
                    return;
                }
                if (!said) {
                    LOG.log(Level.WARNING, "no engines are let in at " + path + " for now", refused);
                }
                said = true;
                LockSupport.parkNanos(this, TimeUnit.MILLISECONDS.toNanos(POLL_MILLIS));
            }
        }
    }

    private void startSession(UnixSocket engine) {
        if (closing || engines.size() >= MAX_ENGINES) {
            engine.close();
            return;
        }
        engines.add(engine);
        Thread thread = Thread.ofPlatform().daemon(true).name("kvcache-engine").unstarted(() -> serve(engine));
        threads.add(thread);
        thread.start();
    }

    private void serve(UnixSocket socket) {
        EngineSession session = null;
        try {
            DeviceDriver driver = drivers.get();
            try {
                session = new EngineSession(socket, cache, tier, namespaces, driver, threshold);
            } catch (RuntimeException refused) {
                closeWithAll(driver);
                throw refused;
            }
            try {
                serve(session);
            } finally {
                endSession(session, driver);
            }
        } catch (IOException | UncheckedIOException | DeviceException over) {
            LOG.log(Level.INFO, "an engine is let go: {0}", over.getMessage());
        } catch (RuntimeException bug) {
            LOG.log(Level.ERROR, "an engine is let go", bug);
        } finally {
            engines.remove(socket);
            socket.close();
            if (session != null) {
                session.returnRoom(() -> closing);
            }
            threads.remove(Thread.currentThread());
        }
    }

    private void serve(EngineSession session) throws IOException {
        boolean there = true;
        while (there && !closing) {
            there = session.poll(POLL_MILLIS);
        }
    }

    /// Until the device has done with them, slots and the engine's memory stay as they are.
    private static void endSession(EngineSession session, DeviceDriver driver) {
        if (!session.transferQueue().drain(MAX_DRAIN_NANOS)) {
            LOG.log(Level.ERROR, "copies for an engine do not end: what they use is kept for good");
            return;
        }
        try {
            session.close();
        } catch (DeviceException refused) {
            LOG.log(Level.DEBUG, "given back with the device", refused);
        } finally {
            closeWithAll(driver);
            session.abandon();
        }
    }

    private static void closeWithAll(DeviceDriver driver) {
        try {
            driver.close();
        } catch (IllegalStateException left) {
            LOG.log(Level.DEBUG, "closed with all that it had", left);
        }
    }

    /// Lets all engines go, waits for what is on its way to and from them, a bounded time, and removes the
    /// socket.
    @Override
    public void close() {
        closing = true;
        listening.shutdown();
        engines.forEach(UnixSocket::shutdown);
        long since = System.nanoTime();
        boolean interrupted = joinThreads(accepting, since);
        for (Thread thread : threads) {
            interrupted |= joinThreads(thread, since);
        }
        listening.close();
        try {
            Files.deleteIfExists(path);
        } catch (IOException left) {
            LOG.log(Level.WARNING, "left behind: " + path, left);
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private static boolean joinThreads(Thread thread, long since) {
        boolean interrupted = false;
        while (true) {
            try {
                long left = MAX_CLOSE_NANOS - (System.nanoTime() - since);
                if (!thread.join(Duration.ofNanos(left))) {
                    LOG.log(Level.ERROR, "{0} does not come back from the device: it is left behind", thread.getName());
                }
                return interrupted;
            } catch (InterruptedException stopped) {
                interrupted = true;
            }
        }
    }
}

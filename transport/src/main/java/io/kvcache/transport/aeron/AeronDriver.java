package io.kvcache.transport.aeron;

import io.aeron.Aeron;
import io.aeron.driver.DataPacketDispatcher;
import io.aeron.driver.MediaDriver;
import io.aeron.driver.ReceiveChannelEndpointSupplier;
import io.aeron.driver.ThreadingMode;
import io.aeron.driver.media.ReceiveChannelEndpoint;
import io.aeron.driver.media.UdpChannel;
import io.aeron.protocol.SetupFlyweight;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.agrona.CloseHelper;
import org.agrona.concurrent.UnsafeBuffer;
import org.agrona.concurrent.status.AtomicCounter;
import org.jspecify.annotations.Nullable;

/// A client of a media driver, and the driver if it is embedded: shared by the connections that go through
/// it, closed by the last of them.
///
/// What is mapped goes with the client, so a caller must retain it before it touches a stream.
///
/// **Threads.** Any.
final class AeronDriver {

    private static final System.Logger LOG = System.getLogger(AeronDriver.class.getName());

    /// How long a process may be dead or stopped before its streams end. A server's leases last longer.
    private static final long LIVENESS_NANOS = TimeUnit.SECONDS.toNanos(5);

    /// After the driver went silent.
    private static final long DRIVER_TIMEOUT_MILLIS = 4_000;

    /// How late time-outs and lost peers may be noticed.
    private static final long TIMER_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// How late an answer of the driver may be heard: while a connection is opened, never while it is used.
    private static final long CONDUCTOR_IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(4);

    /// What an embedded driver gets to tell over UDP that streams have ended, which it says ten times a second;
    /// without it the other side waits until it takes them for dead.
    private static final long LINGER_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

    /// The least that Aeron takes: room for 8,192 counters, and four times as much for their names. Its
    /// own choice would take most of a container's shared memory.
    private static final int COUNTERS_BYTES = 1 << 20;

    /// Of a driver's own files: commands, counters and what was lost.
    private static final long DRIVER_BYTES = 12 << 20;

    private final Aeron aeron;
    private final @Nullable MediaDriver driver;
    private final @Nullable DriverDirectory folder;
    private final boolean lingers;
    private int users = 1;

    /// @param lingers whether an embedded driver has something to tell others when its streams end
    private AeronDriver(Aeron aeron, @Nullable MediaDriver driver, @Nullable DriverDirectory folder, boolean lingers) {
        this.lingers = lingers;
        this.aeron = aeron;
        this.driver = driver;
        this.folder = folder;
    }

    /// For a server: embeds a driver unless the address names one.
    static AeronDriver forServer(AeronAddress address) throws IOException {
        Path external = address.driver();
        if (external != null) {
            return attach(address, external);
        }
        Path named = address.folder();
        return embed(address, named == null ? DriverDirectory.createTemporary() : DriverDirectory.claim(named));
    }

    /// For a client: over IPC there is the server's driver, over UDP a client has its own.
    static AeronDriver forClient(AeronAddress address) throws IOException {
        Path external = address.driver();
        Path folder = address.folder();
        if (external != null) {
            return attach(address, external);
        }
        if (address.isIpc() && folder != null) {
            if (!Files.exists(folder)) {
                throw new IOException("no server has its driver in " + folder);
            }
            DriverDirectory.requirePrivate(folder);
            return attach(address, DriverDirectory.driver(folder));
        }
        return embed(address, DriverDirectory.createTemporary());
    }

    private static AeronDriver attach(AeronAddress address, Path directory) throws IOException {
        if (!Files.exists(directory.resolve("cnc.dat"))) {
            throw new IOException("no media driver runs in " + directory);
        }
        try {
            return new AeronDriver(client(address, directory), null, null, false);
        } catch (RuntimeException failed) {
            throw new IOException("cannot use the media driver of " + address.text(), failed);
        }
    }

    private static AeronDriver embed(AeronAddress address, DriverDirectory folder) throws IOException {
        MediaDriver driver = null;
        try {
            folder.requireFreeSpace(DRIVER_BYTES + address.connectionBytes());
            driver = MediaDriver.launch(driverContext(address, folder.driver()));
            return new AeronDriver(client(address, folder.driver()), driver, folder, !address.isIpc());
        } catch (RuntimeException failed) {
            CloseHelper.quietClose(driver);
            folder.close();
            throw new IOException("cannot start a media driver for " + address.text(), failed);
        } catch (IOException noRoom) {
            folder.close();
            throw noRoom;
        }
    }

    private static Aeron client(AeronAddress address, Path directory) {
        return Aeron.connect(new Aeron.Context()
                .aeronDirectoryName(directory.toString())
                .driverTimeoutMs(DRIVER_TIMEOUT_MILLIS)
                .idleSleepDurationNs(CONDUCTOR_IDLE_NANOS)
                .idleStrategy(AdaptiveIdleStrategy.forDriver(address.dedicated()))
                .threadFactory(threads("client"))
                .errorHandler(AeronDriver::onError)
                .subscriberErrorHandler(AeronDriver::onError));
    }

    static MediaDriver.Context driverContext(AeronAddress address, Path directory) {
        return new MediaDriver.Context()
                .aeronDirectoryName(directory.toString())
                .dirDeleteOnStart(true)
                .dirDeleteOnShutdown(true)
                .warnIfDirectoryExists(false)
                .threadingMode(address.dedicated() ? ThreadingMode.DEDICATED : ThreadingMode.SHARED)
                .sharedIdleStrategy(AdaptiveIdleStrategy.forDriver(address.dedicated()))
                .conductorIdleStrategy(AdaptiveIdleStrategy.forDriver(address.dedicated()))
                .senderIdleStrategy(AdaptiveIdleStrategy.forDriver(address.dedicated()))
                .receiverIdleStrategy(AdaptiveIdleStrategy.forDriver(address.dedicated()))
                .sharedThreadFactory(threads("driver"))
                .conductorThreadFactory(threads("conductor"))
                .senderThreadFactory(threads("sender"))
                .receiverThreadFactory(threads("receiver"))
                .asyncExecutorThreadFactory(threads("tasks"))
                .asyncExecutorIdleStrategy(AdaptiveIdleStrategy.forDriver(false))
                .counterValuesBufferLength(COUNTERS_BYTES)
                .ipcMtuLength(address.messageBytes())
                .mtuLength(address.messageBytes())
                .ipcTermBufferLength(address.termBytes())
                .publicationTermBufferLength(address.termBytes())
                .receiveChannelEndpointSupplier(new TermLengthGuard(address.termBytes()))
                // A sparse file is found to have no room when it is written to, and that ends the process.
                .termBufferSparseFile(false)
                .timerIntervalNs(TIMER_NANOS)
                .clientLivenessTimeoutNs(LIVENESS_NANOS)
                .imageLivenessTimeoutNs(LIVENESS_NANOS)
                .publicationConnectionTimeoutNs(LIVENESS_NANOS)
                .publicationUnblockTimeoutNs(2 * LIVENESS_NANOS)
                .publicationLingerTimeoutNs(TimeUnit.SECONDS.toNanos(1))
                .errorHandler(AeronDriver::onError);
    }

    private static ThreadFactory threads(String name) {
        return Thread.ofPlatform().daemon().name("kvcache-aeron-" + name).factory();
    }

    private static void onError(Throwable what) {
        LOG.log(System.Logger.Level.DEBUG, "Aeron reports", what);
    }

    Aeron aeron() {
        return aeron;
    }

    /// Whether it has ended by itself: after a pause of this process, or of the driver's, that was longer than
    /// the driver may be silent. Its streams are closed, and it opens no others.
    boolean isClosed() {
        return aeron.isClosed();
    }

    /// One more user.
    ///
    /// @return false when it is closed, or of no use any more
    synchronized boolean retain() {
        if (users == 0 || aeron.isClosed()) {
            return false;
        }
        users++;
        return true;
    }

    /// One user less; the last one closes.
    void release() {
        synchronized (this) {
            if (--users > 0) {
                return;
            }
        }
        CloseHelper.quietClose(aeron);
        if (driver != null && lingers) {
            LockSupport.parkNanos(LINGER_NANOS);
        }
        CloseHelper.quietClose(driver);
        CloseHelper.quietClose(folder);
    }

    /// Takes no streams over UDP whose terms are much longer than usual, but for those as long as this side's own.
    /// The sender says how long they are, up to 1 GiB, and the driver allocates three of them before any
    /// authentication: one message took 3 GiB of shared memory.
    ///
    /// That is a limit of each message, not of how many come: a sender that reaches the port can still use up
    /// memory.
    ///
    /// **Threads.** The driver's.
    private static final class TermLengthGuard implements ReceiveChannelEndpointSupplier {

        private static final System.Logger LOG = System.getLogger(TermLengthGuard.class.getName());

        /// Of terms that need not be this side's own: four times as long as they are by default.
        private static final int DEFAULT_MAX_BYTES = 4 << 20;

        private final int maxBytes;
        private final AtomicBoolean warned = new AtomicBoolean();

        /// @param ownBytes of a term of this side
        TermLengthGuard(int ownBytes) {
            maxBytes = Math.max(ownBytes, DEFAULT_MAX_BYTES);
        }

        @Override
        public ReceiveChannelEndpoint newInstance(
                UdpChannel channel,
                DataPacketDispatcher dispatcher,
                AtomicCounter status,
                MediaDriver.Context context) {
            return new Receiver(channel, dispatcher, status, context);
        }

        private boolean accepts(SetupFlyweight stream, InetSocketAddress from) {
            int bytes = stream.termLength();
            if (bytes >= 0 && bytes <= maxBytes) {
                return true;
            }
            System.Logger.Level level =
                    warned.getAndSet(true) ? System.Logger.Level.DEBUG : System.Logger.Level.WARNING;
            LOG.log(
                    level,
                    "a stream from " + from + " has terms of " + bytes + " bytes, and is not taken; allowed: up to "
                            + maxBytes + "; give this side the same term-length");
            return false;
        }

        /// What the driver lets others extend to see its messages.
        private final class Receiver extends ReceiveChannelEndpoint {

            Receiver(
                    UdpChannel channel,
                    DataPacketDispatcher dispatcher,
                    AtomicCounter status,
                    MediaDriver.Context context) {
                super(channel, dispatcher, status, context);
            }

            @Override
            public void onSetupMessage(
                    SetupFlyweight header,
                    UnsafeBuffer buffer,
                    int length,
                    InetSocketAddress srcAddress,
                    int transportIndex) {
                if (accepts(header, srcAddress)) {
                    super.onSetupMessage(header, buffer, length, srcAddress, transportIndex);
                }
            }
        }
    }
}

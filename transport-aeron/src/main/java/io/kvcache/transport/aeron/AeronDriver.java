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

/// A client of a media driver, and the driver if it is embedded. The connections through it share it, and the
/// last one closes it.
///
/// The client's end unmaps its streams, so a caller must retain it before it touches a stream.
///
/// **Threads.** Any.
final class AeronDriver {

    private static final System.Logger LOG = System.getLogger(AeronDriver.class.getName());

    /// Streams of a process end when it has been dead or stopped for this long. A server's leases last longer.
    private static final long LIVENESS_NANOS = TimeUnit.SECONDS.toNanos(5);

    /// A client gives the driver up after this time of silence.
    private static final long DRIVER_TIMEOUT_MILLIS = 4_000;

    /// Most delay until the driver notices a timeout or a lost peer.
    private static final long TIMER_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

    /// Most delay until a client hears an answer of the driver. It affects the opening of a connection only.
    private static final long CONDUCTOR_IDLE_NANOS = TimeUnit.MILLISECONDS.toNanos(4);

    /// Time for an embedded driver to announce over UDP that streams have ended, ten times a second. Otherwise the
    /// other side waits for the liveness timeout.
    private static final long LINGER_NANOS = TimeUnit.MILLISECONDS.toNanos(250);

    /// Aeron's minimum: room for 8,192 counters, and four times as much for their names. Its default would take
    /// most of a container's shared memory.
    private static final int COUNTERS_BYTES = 1 << 20;

    /// Bytes of a driver's own files: commands, counters and the loss report.
    private static final long DRIVER_BYTES = 12 << 20;

    private final Aeron aeron;
    private final @Nullable MediaDriver driver;
    private final @Nullable DriverDirectory folder;
    private final boolean lingers;
    private int users = 1;

    /// @param lingers whether an embedded driver must announce the end of its streams to other drivers
    private AeronDriver(Aeron aeron, @Nullable MediaDriver driver, @Nullable DriverDirectory folder, boolean lingers) {
        this.lingers = lingers;
        this.aeron = aeron;
        this.driver = driver;
        this.folder = folder;
    }

    /// Returns the driver for a server: an embedded one, unless the address names one.
    static AeronDriver forServer(AeronAddress address) throws IOException {
        Path external = address.driver();
        if (external != null) {
            return attach(address, external);
        }
        Path named = address.folder();
        return embed(address, named == null ? DriverDirectory.createTemporary() : DriverDirectory.claim(named));
    }

    /// Returns the driver for a client: over IPC the server's driver, over UDP an embedded one. An address may name
    /// another one.
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
                // With a sparse file, a lack of disk space shows only at a write, and ends the process.
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

    /// Returns whether the client has closed itself, after a pause of this process or of the driver that was longer
    /// than the driver timeout. Then its streams are closed, and it opens no others.
    boolean isClosed() {
        return aeron.isClosed();
    }

    /// Adds a user.
    ///
    /// @return false when it is closed
    synchronized boolean retain() {
        if (users == 0 || aeron.isClosed()) {
            return false;
        }
        users++;
        return true;
    }

    /// Removes a user. The last one closes the client and an embedded driver.
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

    /// Rejects streams over UDP with terms longer than 4 MiB, or than this side's own if these are longer.
    ///
    /// The sender chooses the length, up to 1 GiB, and the driver allocates three terms before any authentication.
    /// One message took 3 GiB of shared memory.
    ///
    /// This limits each message, not their number: a sender that reaches the port can still use up memory.
    ///
    /// **Threads.** The driver's.
    private static final class TermLengthGuard implements ReceiveChannelEndpointSupplier {

        private static final System.Logger LOG = System.getLogger(TermLengthGuard.class.getName());

        /// Longest term that is accepted whatever this side's own length: four times the default length.
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

        /// The driver's extension point that sees its setup messages.
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

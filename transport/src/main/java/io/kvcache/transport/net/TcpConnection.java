package io.kvcache.transport.net;

import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.OutboundFrame;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.GatheringByteChannel;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Function;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/// One TCP connection, of either side.
///
/// An interrupt of a thread inside ends the connection, together with the call that the thread makes. Once the
/// connection is [shared][#share] it does not.
public final class TcpConnection implements FrameConnection {

    /// Within the second-level cache, as measured for both sides of a copy through the kernel.
    private static final int MAX_WRITE_BYTES = 1 << 20;

    /// Most messages fit. Payload bytes that arrive with their header are copied, so the buffer is small.
    private static final int BUFFER_BYTES = 8 << 10;

    private static final ByteBuffer EMPTY = ByteBuffer.allocate(0);

    private static final System.Logger LOG = System.getLogger(TcpConnection.class.getName());

    private final SocketBytes bytes;
    private final ReadableByteChannel in;
    private final GatheringByteChannel out;
    private final @Nullable TlsChannel tls;
    private final long openNanos;
    private final FrameHandler handler;
    private final FrameReader reader;
    private final ReentrantLock writing = new ReentrantLock();

    /// Buffers to send, used by the owner of that lock.
    private ByteBuffer[] gatherBuffers = {EMPTY, EMPTY};

    private int gathered;
    private final ConnectionState state = new ConnectionState();
    private final String place;
    private final @Nullable ReplySpin spin;

    /// A connection whose bytes are what they are.
    ///
    /// @param handler of this line, which must not use it yet
    public TcpConnection(SocketChannel socket, Function<FrameSink, FrameHandler> handler) {
        this(socket, null, 0, handler);
    }

    /// A connection behind TLS.
    ///
    /// @param tls of this socket; opened when the line is pumped first, if it is not by then
    /// @param openNanos how long that may take
    /// @param handler of this line, which must not use it yet
    public TcpConnection(
            SocketChannel socket, @Nullable TlsChannel tls, long openNanos, Function<FrameSink, FrameHandler> handler) {
        this.tls = tls;
        this.openNanos = openNanos;
        bytes = tls == null ? new SocketBytes(socket) : tls.bytes();
        in = tls == null ? bytes : tls;
        out = tls == null ? bytes : tls;
        place = place(socket);
        spin = tls == null ? ReplySpin.of(socket) : null;
        this.handler = handler.apply(this);
        reader = FrameReader.open(this.handler, BUFFER_BYTES);
    }

    /// Returns the peer's address; for IPv6 the /64 network, as one host may have all addresses of it.
    private static String place(SocketChannel channel) {
        try {
            InetAddress address =
                    channel.getRemoteAddress() instanceof InetSocketAddress inet ? inet.getAddress() : null;
            if (address instanceof Inet6Address) {
                return HexFormat.ofDelimiter(":").formatHex(address.getAddress(), 0, 8) + "/64";
            }
            return address == null ? "" : address.getHostAddress();
        } catch (IOException gone) {
            return "";
        }
    }

    @Override
    public String peerAddress() {
        return place;
    }

    /// Sets what every connection needs. The sizes of the socket's buffers are left to the kernel, which
    /// makes them grow further than it allows to be asked for.
    public static SocketChannel configure(SocketChannel channel) throws IOException {
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        return channel;
    }

    @Override
    public void share() throws IOException {
        bytes.share();
    }

    @Override
    public boolean pump() {
        try {
            if (tls != null) {
                tls.handshake(openNanos);
            }
            int read = in.read(reader.writableBuffer());
            if (read < 0) {
                state.close(reader.isInFrame() ? DisconnectReason.BROKEN : DisconnectReason.PEER_CLOSED);
            } else {
                reader.bytesWritten(read);
                state.onBytesReceived(reader.isInFrame());
            }
        } catch (TlsChannel.PlaintextPeerException plain) {
            refuse("no TLS; allowed: TLS, which clients speak to tls:host:port");
        } catch (SSLException strange) {
            LOG.log(System.Logger.Level.DEBUG, "no TLS with " + place, strange);
            close(DisconnectReason.MALFORMED);
        } catch (IOException broken) {
            close(DisconnectReason.BROKEN);
        } catch (ProtocolException malformed) {
            refuse(String.valueOf(malformed.getMessage()));
        } catch (RuntimeException | Error bug) {
            close(DisconnectReason.INTERNAL);
            LOG.log(System.Logger.Level.ERROR, "a connection is closed because of a bug", bug);
        }
        if (isOpen()) {
            return true;
        }
        // The JDK closes the socket of an interrupted sender before the sender can say so.
        state.close(DisconnectReason.BROKEN);
        // Before the socket: a peer that has ended its sending sees the end when nothing is done for it any more.
        state.notifyClosed(handler);
        closeSocket();
        return false;
    }

    @Override
    public void spinUntilReadable() {
        if (spin != null) {
            spin.awaitBytes();
        }
    }

    private void refuse(String why) {
        send(BodyWriter.errorReply(MessageType.ERROR.code(), 0, Status.INVALID, why));
        close(DisconnectReason.MALFORMED);
    }

    @Override
    public boolean send(OutboundFrame frame) {
        boolean interrupted = Thread.interrupted();
        writing.lock();
        try {
            write(frame);
            return true;
        } catch (IOException broken) {
            close(DisconnectReason.BROKEN);
            return false;
        } catch (RuntimeException | Error bug) {
            close(DisconnectReason.INTERNAL); // it may have begun, and nothing can follow half a frame
            throw bug;
        } finally {
            state.onWriteComplete();
            writing.unlock();
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private void write(OutboundFrame frame) throws IOException {
        ByteBuffer head = frame.head();
        int start = head.position();
        try {
            gather(head);
            long bytes = 0;
            for (MemorySegment piece : frame.payload().pieces()) {
                ByteBuffer view = piece.asByteBuffer();
                for (int at = 0; at < view.capacity(); ) {
                    int some = (int) Math.min(view.capacity() - at, MAX_WRITE_BYTES - bytes);
                    gather(view.limit(at + some).position(at));
                    at += some;
                    bytes += some;
                    if (bytes == MAX_WRITE_BYTES) {
                        writeGathered();
                        bytes = 0;
                    }
                }
            }
            writeGathered();
        } finally {
            Arrays.fill(gatherBuffers, EMPTY);
            gathered = 0;
            head.position(start);
        }
    }

    private void gather(ByteBuffer next) {
        if (gathered == gatherBuffers.length) {
            gatherBuffers = Arrays.copyOf(gatherBuffers, 2 * gathered); // the rest is null until it is used
        }
        gatherBuffers[gathered] = next;
        gathered++;
    }

    private void writeGathered() throws IOException {
        while (gathered > 0 && gatherBuffers[gathered - 1].hasRemaining()) {
            state.onWriteProgress();
            out.write(gatherBuffers, 0, gathered);
        }
        gathered = 0;
    }

    @Override
    public boolean isOpen() {
        return state.isOpen() && bytes.isOpen();
    }

    @Override
    public long stalledNanos() {
        return state.stalledNanos();
    }

    @Override
    public void close(DisconnectReason why) {
        if (state.close(why)) {
            closeSocket();
        }
    }

    private void closeSocket() {
        try {
            bytes.close();
        } catch (IOException ignored) {
            // It is closed all the same: the descriptor is gone.
        }
    }

    /// Asks a socket for bytes over and over for some microseconds, before its thread sleeps until they come.
    ///
    /// A server on this host answers many a request sooner than a processor that went to sleep for it wakes up.
    /// Only one thread of a process spins at a time, and a connection on which that was in vain leaves it for
    /// some calls, twice as many each time: where answers take longer, and where the server needs the
    /// processor, spinning only costs.
    ///
    /// **Threads.** The one that has the connection.
    static final class ReplySpin {

        private static final long SPIN_NANOS = 80_000;

        /// Between two looks at the socket, each of which holds it against the bytes that arrive.
        private static final long STEP_NANOS = 1_500;

        /// Calls without spinning after a wait in vain, at most.
        private static final int MAX_PAUSE = 64;

        private static final boolean HAS_PROCESSORS = Runtime.getRuntime().availableProcessors() > 1;
        private static final AtomicBoolean SPINNING = new AtomicBoolean();

        private final InputStream in;
        private int pause = 1;
        private int left;

        private ReplySpin(InputStream in) {
            this.in = in;
        }

        /// Returns one for a connection within this host, null for any other.
        static @Nullable ReplySpin of(SocketChannel socket) {
            try {
                boolean local = HAS_PROCESSORS
                        && socket.getRemoteAddress() instanceof InetSocketAddress peer
                        && peer.getAddress().isLoopbackAddress();
                return local ? new ReplySpin(socket.socket().getInputStream()) : null;
            } catch (IOException gone) {
                return null;
            }
        }

        /// Calls of [#awaitBytes] from now on that do not spin.
        int callsToSkip() {
            return left;
        }

        /// Returns when there are bytes, or waiting asleep is better.
        void awaitBytes() {
            if (left > 0) {
                left--;
                return;
            }
            if (!SPINNING.compareAndSet(false, true)) {
                return;
            }
            try {
                boolean here = hasBytesSoon();
                pause = here ? 1 : Math.min(MAX_PAUSE, 2 * pause);
                left = here ? 0 : pause;
            } catch (IOException broken) {
                left = MAX_PAUSE; // who reads learns of it
            } finally {
                SPINNING.set(false);
            }
        }

        private boolean hasBytesSoon() throws IOException {
            long start = System.nanoTime();
            long next = start;
            while (next - start < SPIN_NANOS) {
                next += STEP_NANOS;
                while (System.nanoTime() - next < 0) {
                    Thread.onSpinWait();
                }
                if (in.available() > 0) {
                    return true;
                }
            }
            return false;
        }
    }
}

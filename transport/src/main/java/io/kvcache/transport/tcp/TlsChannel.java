package io.kvcache.transport.tcp;

import io.kvcache.transport.wire.FrameHeader;
import java.io.IOException;
import java.io.InputStream;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.GatheringByteChannel;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;

/// The bytes of a connection behind TLS. What goes out is encrypted out of the slots that it lies in; what comes
/// in is decrypted into the slots that it is for, but for the end of a record that does not fit there, at most
/// 16 KiB.
///
/// Both sides look at what comes first: who speaks our protocol without TLS is told so.
///
/// **Threads.** One reads and any write, at the same time, once one has opened it.
final class TlsChannel implements ReadableByteChannel, GatheringByteChannel {

    /// Records that go through the kernel at once: all of them stay in a second-level cache.
    private static final int RECORDS = 8;

    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0);

    private final SocketChannel socket;
    private final SSLEngine engine;
    private final int recordBytes;

    /// What has come and is not decrypted, between position and limit.
    private final ByteBuffer arrived;

    /// What is decrypted and found no room, between position and limit.
    private final ByteBuffer spilled;

    private final ByteBuffer[] targets = new ByteBuffer[2];
    private final ByteBuffer leaving;
    private final ReentrantLock writing = new ReentrantLock();
    private boolean ready;

    /// Whether the other side has begun without TLS.
    private volatile boolean plain;

    TlsChannel(SocketChannel socket, SSLEngine engine) {
        this.socket = socket;
        this.engine = engine;
        recordBytes = engine.getSession().getPacketBufferSize();
        arrived = ByteBuffer.allocateDirect(RECORDS * recordBytes).flip();
        leaving = ByteBuffer.allocateDirect(RECORDS * recordBytes);
        spilled = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize())
                .flip();
        targets[1] = spilled;
    }

    /// Shakes hands, before anything is read or written.
    ///
    /// @param timeoutNanos the longest wait for the other side
    /// @throws WithoutTls when it has begun without TLS; it can be told so by writing
    /// @throws IOException when it failed otherwise
    void open(long timeoutNanos) throws IOException {
        if (ready) {
            return;
        }
        long until = System.nanoTime() + timeoutNanos;
        try {
            engine.beginHandshake();
            while (!done(engine.getHandshakeStatus())) {
                step(until);
            }
            socket.socket().setSoTimeout(0);
            ready = true;
        } catch (SSLException failed) {
            tellWhy();
            throw failed;
        }
    }

    private static boolean done(HandshakeStatus status) {
        return status == HandshakeStatus.NOT_HANDSHAKING || status == HandshakeStatus.FINISHED;
    }

    private void step(long untilNanos) throws IOException {
        switch (engine.getHandshakeStatus()) {
            case NEED_TASK -> compute();
            case NEED_WRAP -> answer();
            case NEED_UNWRAP, NEED_UNWRAP_AGAIN -> {
                if (decrypt(NOTHING).getStatus() == SSLEngineResult.Status.BUFFER_UNDERFLOW) {
                    receive(untilNanos);
                }
            }
            case FINISHED, NOT_HANDSHAKING -> {}
        }
    }

    /// The first bytes of a connection decide.
    private void receive(long untilNanos) throws IOException {
        boolean first = arrived.limit() == 0;
        long left = TimeUnit.NANOSECONDS.toMillis(untilNanos - System.nanoTime());
        if (left <= 0) {
            throw new SocketTimeoutException("no TLS handshake in time");
        }
        socket.socket().setSoTimeout((int) Math.min(left, Integer.MAX_VALUE));
        InputStream in = socket.socket().getInputStream(); // unlike the channel, it has time-outs
        byte[] some = new byte[Math.min(recordBytes, arrived.capacity() - arrived.remaining())];
        int bytes = in.read(some);
        if (bytes < 0) {
            throw new IOException("the connection ended in the TLS handshake");
        }
        arrived.compact().put(some, 0, bytes).flip();
        if (first && bytes >= Integer.BYTES) {
            plain = arrived.duplicate().order(ByteOrder.LITTLE_ENDIAN).getInt() == FrameHeader.MAGIC;
        }
        if (plain) {
            throw new WithoutTls();
        }
    }

    /// The other side speaks our protocol as it is.
    static final class WithoutTls extends IOException {

        private static final long serialVersionUID = 1L;

        WithoutTls() {
            super("there is no TLS at the other side");
        }
    }

    /// An engine that has failed has an alert to send.
    private void tellWhy() {
        try {
            answer();
        } catch (IOException gone) {
            // Who is gone need not be told.
        }
    }

    /// Sends what the engine itself has to say.
    private void answer() throws IOException {
        writing.lock();
        try {
            leaving.clear();
            engine.wrap(NOTHING, leaving);
            flush();
        } finally {
            writing.unlock();
        }
    }

    private void flush() throws IOException {
        leaving.flip();
        while (leaving.hasRemaining()) {
            socket.write(leaving);
        }
    }

    private SSLEngineResult decrypt(ByteBuffer into) throws SSLException {
        targets[0] = into;
        spilled.clear();
        try {
            return engine.unwrap(arrived, targets);
        } finally {
            spilled.flip();
        }
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
        int start = into.position();
        if (spilled.hasRemaining()) {
            int bytes = Math.min(spilled.remaining(), into.remaining());
            into.put(spilled.slice(spilled.position(), bytes));
            spilled.position(spilled.position() + bytes);
            return bytes;
        }
        boolean open = true;
        while (open && into.hasRemaining()) {
            SSLEngineResult result = decrypt(into);
            switch (result.getStatus()) {
                case OK -> reply(result.getHandshakeStatus());
                case BUFFER_UNDERFLOW -> {
                    if (into.position() > start) {
                        return into.position() - start;
                    }
                    open = refill();
                }
                case BUFFER_OVERFLOW -> throw new SSLException("a record of more than " + spilled.capacity());
                case CLOSED -> open = false;
            }
        }
        return into.position() > start ? into.position() - start : -1;
    }

    /// What the other side wants beside bytes, such as a new key.
    private void reply(HandshakeStatus wanted) throws IOException {
        if (wanted == HandshakeStatus.NEED_TASK) {
            compute();
        } else if (wanted == HandshakeStatus.NEED_WRAP) {
            answer();
        }
    }

    private void compute() {
        for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
            task.run();
        }
    }

    private boolean refill() throws IOException {
        arrived.compact();
        try {
            return socket.read(arrived) >= 0;
        } finally {
            arrived.flip();
        }
    }

    @Override
    public long write(ByteBuffer[] from, int offset, int length) throws IOException {
        if (plain) {
            return socket.write(from, offset, length);
        }
        writing.lock();
        try {
            leaving.clear();
            long taken = 0;
            boolean more = true;
            while (more && leaving.remaining() >= recordBytes) {
                SSLEngineResult result = engine.wrap(from, offset, length, leaving);
                boolean moved = result.bytesConsumed() > 0 || result.bytesProduced() > 0;
                if (!moved && leaving.position() == 0) {
                    throw new SSLException("TLS is " + result.getStatus() + ", " + result.getHandshakeStatus());
                }
                taken += result.bytesConsumed();
                more = moved && from[offset + length - 1].hasRemaining();
            }
            flush();
            return taken;
        } finally {
            writing.unlock();
        }
    }

    @Override
    public long write(ByteBuffer[] from) throws IOException {
        return write(from, 0, from.length);
    }

    @Override
    public int write(ByteBuffer from) throws IOException {
        return (int) write(new ByteBuffer[] {from}, 0, 1);
    }

    @Override
    public boolean isOpen() {
        return socket.isOpen();
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}

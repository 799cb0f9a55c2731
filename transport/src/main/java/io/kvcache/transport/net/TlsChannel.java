package io.kvcache.transport.net;

import io.kvcache.transport.wire.FrameHeader;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
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
/// Both sides look at what comes first: a peer that speaks our protocol without TLS is told so.
///
/// **Threads.** One reads and any write, at the same time, once one has opened it.
public final class TlsChannel implements ReadableByteChannel, GatheringByteChannel {

    /// Records that go through the kernel at once: all of them stay in a second-level cache.
    private static final int RECORDS = 8;

    private static final ByteBuffer EMPTY = ByteBuffer.allocate(0);

    private final SocketBytes bytes;
    private final SSLEngine engine;
    private final int recordBytes;

    /// Bytes received but not decrypted, between position and limit.
    private final ByteBuffer encryptedInput;

    /// Decrypted bytes that the caller's buffer had no room for, between position and limit.
    private final ByteBuffer decryptedOverflow;

    private final ByteBuffer[] targets = new ByteBuffer[2];
    private final ByteBuffer encryptedOutput;
    private final ReentrantLock writing = new ReentrantLock();
    private boolean ready;

    /// True if the peer began without TLS.
    private volatile boolean peerIsPlaintext;

    public TlsChannel(SocketChannel socket, SSLEngine engine) {
        bytes = new SocketBytes(socket);
        this.engine = engine;
        recordBytes = engine.getSession().getPacketBufferSize();
        encryptedInput = ByteBuffer.allocateDirect(RECORDS * recordBytes).flip();
        encryptedOutput = ByteBuffer.allocateDirect(RECORDS * recordBytes);
        decryptedOverflow = ByteBuffer.allocate(engine.getSession().getApplicationBufferSize())
                .flip();
        targets[1] = decryptedOverflow;
    }

    SocketBytes bytes() {
        return bytes;
    }

    /// Shakes hands, before anything is read or written.
    ///
    /// @param timeoutNanos the longest wait for the other side
    /// @throws PlaintextPeerException when it has begun without TLS; it can be told so by writing
    /// @throws IOException when it failed otherwise
    void handshake(long timeoutNanos) throws IOException {
        if (ready) {
            return;
        }
        long until = System.nanoTime() + timeoutNanos;
        try {
            engine.beginHandshake();
            while (!isHandshakeComplete(engine.getHandshakeStatus())) {
                step(until);
            }
            bytes.socket().socket().setSoTimeout(0);
            ready = true;
        } catch (SSLException failed) {
            sendAlert();
            throw failed;
        }
    }

    private static boolean isHandshakeComplete(HandshakeStatus status) {
        return status == HandshakeStatus.NOT_HANDSHAKING || status == HandshakeStatus.FINISHED;
    }

    private void step(long untilNanos) throws IOException {
        switch (engine.getHandshakeStatus()) {
            case NEED_TASK -> runDelegatedTasks();
            case NEED_WRAP -> sendHandshakeBytes();
            case NEED_UNWRAP, NEED_UNWRAP_AGAIN -> {
                if (decrypt(EMPTY).getStatus() == SSLEngineResult.Status.BUFFER_UNDERFLOW) {
                    receive(untilNanos);
                }
            }
            case FINISHED, NOT_HANDSHAKING -> {}
        }
    }

    /// The first bytes of a connection decide.
    private void receive(long untilNanos) throws IOException {
        boolean first = encryptedInput.limit() == 0;
        long left = TimeUnit.NANOSECONDS.toMillis(untilNanos - System.nanoTime());
        if (left <= 0) {
            throw new SocketTimeoutException("no TLS handshake in time");
        }
        Socket socket = bytes.socket().socket();
        socket.setSoTimeout((int) Math.min(left, Integer.MAX_VALUE));
        InputStream in = socket.getInputStream(); // unlike the channel, it has time-outs
        byte[] some = new byte[Math.min(recordBytes, encryptedInput.capacity() - encryptedInput.remaining())];
        int read = in.read(some);
        if (read < 0) {
            throw new IOException("the connection ended in the TLS handshake");
        }
        encryptedInput.compact().put(some, 0, read).flip();
        if (first && read >= Integer.BYTES) {
            peerIsPlaintext =
                    encryptedInput.duplicate().order(ByteOrder.LITTLE_ENDIAN).getInt() == FrameHeader.MAGIC;
        }
        if (peerIsPlaintext) {
            throw new PlaintextPeerException();
        }
    }

    /// The other side speaks our protocol as it is.
    static final class PlaintextPeerException extends IOException {

        private static final long serialVersionUID = 1L;

        PlaintextPeerException() {
            super("the peer does not use TLS");
        }
    }

    /// An engine that has failed has an alert to send.
    private void sendAlert() {
        try {
            sendHandshakeBytes();
        } catch (IOException gone) {
            // A peer that is gone need not be told.
        }
    }

    /// Sends what the engine itself has to say.
    private void sendHandshakeBytes() throws IOException {
        writing.lock();
        try {
            encryptedOutput.clear();
            engine.wrap(EMPTY, encryptedOutput);
            flush();
        } finally {
            writing.unlock();
        }
    }

    private void flush() throws IOException {
        encryptedOutput.flip();
        while (encryptedOutput.hasRemaining()) {
            bytes.write(encryptedOutput);
        }
    }

    private SSLEngineResult decrypt(ByteBuffer into) throws SSLException {
        targets[0] = into;
        decryptedOverflow.clear();
        try {
            return engine.unwrap(encryptedInput, targets);
        } finally {
            decryptedOverflow.flip();
        }
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
        int start = into.position();
        if (decryptedOverflow.hasRemaining()) {
            int some = Math.min(decryptedOverflow.remaining(), into.remaining());
            into.put(decryptedOverflow.slice(decryptedOverflow.position(), some));
            decryptedOverflow.position(decryptedOverflow.position() + some);
            return some;
        }
        boolean open = true;
        while (open && into.hasRemaining()) {
            SSLEngineResult result = decrypt(into);
            switch (result.getStatus()) {
                case OK -> handlePostHandshake(result.getHandshakeStatus());
                case BUFFER_UNDERFLOW -> {
                    if (into.position() > start) {
                        return into.position() - start;
                    }
                    open = refill();
                }
                case BUFFER_OVERFLOW -> throw new SSLException("a record of more than " + decryptedOverflow.capacity());
                case CLOSED -> open = false;
            }
        }
        return into.position() > start ? into.position() - start : -1;
    }

    /// Handles handshake messages after the first handshake, such as a key update. Over TLS 1.2 that is another
    /// handshake,
    /// which a client can ask for at any time and which costs the server far more than the client: it is refused.
    private void handlePostHandshake(HandshakeStatus wanted) throws IOException {
        if (wanted == HandshakeStatus.NEED_TASK) {
            if (engine.getSession().getProtocol().equals("TLSv1.2")) {
                throw new SSLException("the peer renegotiates TLS 1.2, which is refused");
            }
            runDelegatedTasks();
        } else if (wanted == HandshakeStatus.NEED_WRAP) {
            sendHandshakeBytes();
        }
    }

    private void runDelegatedTasks() {
        for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
            task.run();
        }
    }

    private boolean refill() throws IOException {
        encryptedInput.compact();
        try {
            return bytes.read(encryptedInput) >= 0;
        } finally {
            encryptedInput.flip();
        }
    }

    @Override
    public long write(ByteBuffer[] from, int offset, int length) throws IOException {
        if (peerIsPlaintext) {
            return bytes.write(from, offset, length);
        }
        writing.lock();
        try {
            encryptedOutput.clear();
            long taken = 0;
            boolean more = true;
            while (more && encryptedOutput.remaining() >= recordBytes) {
                SSLEngineResult result = engine.wrap(from, offset, length, encryptedOutput);
                boolean moved = result.bytesConsumed() > 0 || result.bytesProduced() > 0;
                if (!moved && encryptedOutput.position() == 0) {
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
        return bytes.isOpen();
    }

    @Override
    public void close() throws IOException {
        bytes.close();
    }
}

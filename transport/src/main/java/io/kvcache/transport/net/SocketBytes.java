package io.kvcache.transport.net;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.GatheringByteChannel;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import org.jspecify.annotations.Nullable;

/// The bytes of a socket, which several threads may [share][#share].
///
/// A channel in blocking mode is closed when a thread inside it is interrupted. That ends a connection which
/// one thread has for itself together with its call. It must not end one that others use too. A channel in
/// non-blocking mode is not closed: it takes or gives what it can at once, and a thread waits for more in a
/// selector, which an interrupt leaves open. That costs a system call more for each wait, so only a shared
/// socket pays it.
///
/// **Threads.** One reads and one writes, at the same time. Any closes.
final class SocketBytes implements ReadableByteChannel, GatheringByteChannel {

    private final SocketChannel socket;

    /// Null as long as the socket is not shared.
    private volatile @Nullable Selector readable;

    /// Null until a write has to wait.
    private volatile @Nullable Selector writable;

    /// The last read left nothing behind, so that the next one waits before it asks. Of the thread that reads.
    private boolean drained;

    SocketBytes(SocketChannel socket) {
        this.socket = socket;
    }

    SocketChannel socket() {
        return socket;
    }

    /// Has no interrupt end the connection from now on. No other thread may be inside.
    void share() throws IOException {
        if (readable == null) {
            socket.configureBlocking(false);
            readable = selector(SelectionKey.OP_READ);
        }
    }

    private Selector selector(int operation) throws IOException {
        Selector selector = Selector.open();
        boolean good = false;
        try {
            socket.register(selector, operation);
            good = true;
            return selector;
        } finally {
            if (!good) {
                selector.close();
            }
        }
    }

    @Override
    public int read(ByteBuffer into) throws IOException {
        Selector ready = readable;
        return ready == null ? socket.read(into) : read(into, ready);
    }

    private int read(ByteBuffer into, Selector ready) throws IOException {
        int room = into.remaining();
        int bytes = drained ? 0 : socket.read(into);
        while (bytes == 0 && room > 0) {
            await(ready);
            bytes = socket.read(into);
        }
        drained = bytes < room;
        return bytes;
    }

    @Override
    public long write(ByteBuffer[] from, int offset, int length) throws IOException {
        long bytes = socket.write(from, offset, length);
        while (bytes == 0 && from[offset + length - 1].hasRemaining()) {
            await(writableSelector());
            bytes = socket.write(from, offset, length);
        }
        return bytes;
    }

    @Override
    public long write(ByteBuffer[] from) throws IOException {
        return write(from, 0, from.length);
    }

    @Override
    public int write(ByteBuffer from) throws IOException {
        int bytes = socket.write(from);
        while (bytes == 0 && from.hasRemaining()) {
            await(writableSelector());
            bytes = socket.write(from);
        }
        return bytes;
    }

    private Selector writableSelector() throws IOException {
        Selector ready = writable;
        if (ready == null) {
            ready = selector(SelectionKey.OP_WRITE);
            writable = ready;
            if (!socket.isOpen()) { // Looked at behind the assignment, as #close does both the other way round.
                ready.close();
            }
        }
        return ready;
    }

    /// Waits until the socket is ready. A selector returns at once when its thread is interrupted, so the
    /// interrupt is put aside; one that comes meanwhile brings the caller here once more.
    private static void await(Selector ready) throws IOException {
        boolean interrupted = Thread.interrupted();
        try {
            ready.select(key -> {});
        } catch (ClosedSelectorException closed) {
            throw new AsynchronousCloseException();
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    public boolean isOpen() {
        return socket.isOpen();
    }

    /// Closes the socket. What is being read or written ends.
    @Override
    public void close() throws IOException {
        try {
            socket.close();
        } finally {
            // Its descriptor stays until the selectors let go of it.
            close(readable);
            close(writable);
        }
    }

    private static void close(@Nullable Selector selector) throws IOException {
        if (selector != null) {
            selector.close();
        }
    }
}

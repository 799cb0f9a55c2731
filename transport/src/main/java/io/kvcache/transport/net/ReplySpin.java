package io.kvcache.transport.net;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Asks a socket for bytes over and over for some microseconds, before its thread sleeps until they come.
///
/// A server on this host answers many a request sooner than a processor that went to sleep for it wakes up. Only one
/// thread of a process spins at a time, and a connection on which that was in vain leaves it for some calls, twice as
/// many
/// each time: where answers take longer, and where the server needs the processor, spinning only costs.
///
/// **Threads.** The one that has the connection.
final class ReplySpin {

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

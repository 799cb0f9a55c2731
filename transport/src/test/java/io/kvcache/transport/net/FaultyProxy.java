package io.kvcache.transport.net;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// Stands between client and server, and does to their bytes what a test wants.
public final class FaultyProxy implements AutoCloseable {

    private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    private final ServerSocket listener;
    private final int target;
    private final Set<Socket> sockets = ConcurrentHashMap.newKeySet();
    private volatile int flipEvery;
    private volatile boolean stalled;
    private volatile long delayNanos;

    /// In front of a server on this host.
    public FaultyProxy(int target) throws IOException {
        this.target = target;
        listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
        Thread.ofPlatform().daemon().start(this::accept);
    }

    public String address() {
        return "127.0.0.1:" + listener.getLocalPort();
    }

    /// Turns a bit of every so many bytes that come from the server; 0 for none.
    public void flip(int every) {
        flipEvery = every;
    }

    /// Passes nothing on any more, or again.
    public void stall(boolean value) {
        stalled = value;
    }

    /// Passes on whatever comes, up to 64 KiB, so much later.
    public void delay(long nanos) {
        delayNanos = nanos;
    }

    /// Breaks the connections that there are.
    public void cut() throws IOException {
        for (Socket socket : sockets) {
            socket.close();
        }
    }

    private void accept() {
        try {
            while (true) {
                Socket client = listener.accept();
                Socket server = new Socket(InetAddress.getLoopbackAddress(), target);
                sockets.add(client);
                sockets.add(server);
                Thread.ofPlatform().daemon().start(() -> pass(client, server, false));
                Thread.ofPlatform().daemon().start(() -> pass(server, client, true));
            }
        } catch (IOException closed) {
            // The test is over.
        }
    }

    private void pass(Socket from, Socket to, boolean answers) {
        byte[] buffer = new byte[1 << 16];
        long passed = 0;
        try (from;
                to) {
            InputStream in = from.getInputStream();
            OutputStream out = to.getOutputStream();
            for (int bytes = in.read(buffer); bytes >= 0; bytes = in.read(buffer)) {
                int every = flipEvery;
                if (answers && every > 0 && passed / every != (passed + bytes) / every) {
                    buffer[bytes / 2] ^= 4;
                }
                passed += bytes;
                while (stalled && !from.isClosed()) {
                    LockSupport.parkNanos(LOOK_NANOS);
                }
                LockSupport.parkNanos(delayNanos);
                out.write(buffer, 0, bytes);
            }
        } catch (IOException broken) {
            // So is the other direction, as both sockets are closed.
        }
    }

    @Override
    public void close() {
        try {
            listener.close();
            for (Socket socket : sockets) {
                socket.close();
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

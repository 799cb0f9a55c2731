package io.kvcache.transport.net;

import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/// Resolves a host name at each connection attempt. The system's lookup has no timeout and cannot be interrupted.
/// So a separate thread runs one lookup at a time, and each caller waits for it no longer than its own timeout.
///
/// **Threads.** Any.
final class HostResolver {

    private final String host;
    private final NameService nameService;
    private final @Nullable InetAddress literal;
    private @Nullable FutureTask<InetAddress> pendingTask;

    /// Looks names up. It may block without a limit.
    @FunctionalInterface
    interface NameService {

        /// The address of a name.
        InetAddress resolve(String name) throws IOException, InterruptedException;
    }

    /// @param host an address, or a name
    HostResolver(String host, NameService nameService) {
        this.host = host;
        this.nameService = nameService;
        literal = literal(host);
    }

    private static @Nullable InetAddress literal(String host) {
        try {
            return InetAddress.ofLiteral(host);
        } catch (IllegalArgumentException name) {
            return null;
        }
    }

    /// The address as it is now, or was when another caller began to ask for it.
    ///
    /// @throws UnknownHostException when there is none
    /// @throws SocketTimeoutException when it was not found in time
    InetAddress resolve(long timeoutNanos) throws IOException {
        if (literal != null) {
            return literal;
        }
        try {
            return pendingLookup().get(timeoutNanos, TimeUnit.NANOSECONDS);
        } catch (ExecutionException failed) {
            UnknownHostException unknown = new UnknownHostException(host + ": no such host");
            unknown.initCause(failed.getCause());
            throw unknown;
        } catch (TimeoutException slow) {
            throw new SocketTimeoutException(host + ": its address was not found in time");
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            throw new InterruptedIOException(host + ": interrupted while its address was looked for");
        }
    }

    private synchronized FutureTask<InetAddress> pendingLookup() {
        FutureTask<InetAddress> now = pendingTask;
        if (now == null || now.isDone()) {
            now = new FutureTask<>(() -> nameService.resolve(host));
            Thread.ofPlatform().daemon().name("kvcache-remote-name").start(now); // which may fail
            pendingTask = now;
        }
        return now;
    }
}

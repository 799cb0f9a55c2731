package io.kvcache.server.access;

import io.kvcache.core.time.Clock;
import io.kvcache.server.log.LogRateLimiter;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Duration;

/// Logs who was not let in, and from where: no more than some lines a minute, as who guesses passwords must not fill
/// the log.
///
/// **Threads.** Any.
final class FailedLoginLog {

    private static final Logger LOG = System.getLogger(FailedLoginLog.class.getName());

    private static final int MAX_LINES = 20;
    private static final Duration WINDOW = Duration.ofMinutes(1);

    /// Of a user's name, which is whatever the client sent.
    private static final int MAX_NAME_LENGTH = 64;

    private final LogRateLimiter limit;

    FailedLoginLog(Clock clock) {
        limit = new LogRateLimiter(clock, MAX_LINES, WINDOW);
    }

    /// Logs one, if the log has room. Never shows what was given for a password.
    ///
    /// @param why `wrong user or password`
    void log(SocketAddress from, String user, String why) {
        long unsaid = limit.tryAcquire();
        if (unsaid != LogRateLimiter.SUPPRESSED) {
            String name = user.length() <= MAX_NAME_LENGTH ? user : user.substring(0, MAX_NAME_LENGTH) + "...";
            LOG.log(
                    Level.WARNING,
                    "Log-in refused: " + why + ", user '" + name + "', from " + text(from)
                            + LogRateLimiter.suppressedNote(unsaid));
        }
    }

    private static String text(SocketAddress from) {
        return from instanceof InetSocketAddress inet && inet.getAddress() != null
                ? inet.getAddress().getHostAddress() + ":" + inet.getPort()
                : String.valueOf(from);
    }
}

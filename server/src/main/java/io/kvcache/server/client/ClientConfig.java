package io.kvcache.server.client;

import java.io.IOException;
import java.net.UnknownHostException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.time.Duration;
import java.util.Base64;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/// A server, and how to authenticate there.
///
/// @param clientCredentials null for a server without authentication
/// @param tls the certificates to trust, or null without TLS
public record ClientConfig(
        String host,
        int port,
        @Nullable ClientCredentials clientCredentials,
        @Nullable SSLContext tls) {

    /// Ending of a message that the server asks for a log-in, or rejected one over HTTP.
    static final String CREDENTIALS_ADVICE = "; give --user and --password-file, or set KVCACHE_PASSWORD";

    /// Until a connection is made, and until a server answers: a live one does within milliseconds, and checks a
    /// password within seconds however busy its machine is.
    public static final Duration ANSWER_TIMEOUT = Duration.ofSeconds(10);

    /// A server that asks nothing.
    public static ClientConfig open(String host, int port) {
        return new ClientConfig(host, port, null, null);
    }

    /// Returns the message for a failed TLS connection: a certificate that is not trusted, or a port without TLS.
    String describeTlsFailure(SSLException failed) {
        for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
            if (cause instanceof GeneralSecurityException) {
                return "no trust in " + hostAndPort() + ": " + failed.getMessage()
                        + "; for a certificate that no public authority signed, give it with --ca FILE";
            }
        }
        return "no TLS with " + hostAndPort() + ": " + failed.getMessage()
                + "; the port may not use TLS: try without --tls and --ca";
    }

    /// Returns the message for a connection that could not be made.
    String describeNoServer(IOException failed) {
        for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
            if (cause instanceof UnknownHostException || cause instanceof UnresolvedAddressException) {
                return "no server at " + hostAndPort() + ": the host name " + host
                        + " is unknown; check --host, or give an IP address";
            }
        }
        String message = failed.getMessage() == null ? "connection refused" : failed.getMessage();
        return "no server at " + hostAndPort() + ": " + message;
    }

    /// Returns the message for a server that stays silent. A port of TLS would have ended a connection without TLS.
    String describeTimeout(Duration timeout) {
        String time = timeout.toMillis() % 1_000 == 0 ? timeout.toSeconds() + " s" : timeout.toMillis() + " ms";
        return hostAndPort() + " does not answer within " + time
                + "; its process may stand still (SIGSTOP, swapping) or be overloaded, or the host is not reachable";
    }

    /// Returns the message for a server that closed the connection before its first reply.
    ///
    /// @param what happened
    String describeNoReply(String what) {
        return what + " from " + hostAndPort()
                + (tls == null
                        ? "; the port may speak TLS: try --tls, or --ca FILE. Or its listener lacks this protocol:"
                                + " see listeners.N.protocols, or listen.protocol, of the server"
                        : "; its listener may lack this protocol: see listeners.N.protocols, or listen.protocol, of the"
                                + " server");
    }

    /// Host and port, as they stand in an address.
    public String hostAndPort() {
        return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port;
    }

    /// A user and a password.
    ///
    /// @param user null for the one that the listener takes a password alone for
    public record ClientCredentials(@Nullable String user, String password) {

        /// The command that says so over Redis' protocol.
        String[] authCommand() {
            return user == null ? new String[] {"AUTH", password} : new String[] {"AUTH", user, password};
        }

        /// The header that says so over HTTP.
        String authorizationHeader() {
            if (user == null) {
                return "Bearer " + password;
            }
            byte[] pair = (user + ":" + password).getBytes(StandardCharsets.UTF_8);
            return "Basic " + Base64.getEncoder().encodeToString(pair);
        }

        /// Without the password, as it may end up in a log.
        @Override
        public String toString() {
            return "Login[" + (user == null ? "usual user" : user) + "]";
        }
    }
}

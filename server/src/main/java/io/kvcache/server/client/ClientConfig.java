package io.kvcache.server.client;

import java.security.GeneralSecurityException;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;

/// A server, and how to come in there.
///
/// @param clientCredentials null where nobody has to say who they are
/// @param tls whom to trust, or null without TLS
public record ClientConfig(
        String host,
        int port,
        @Nullable ClientCredentials clientCredentials,
        @Nullable SSLContext tls) {

    /// A server that asks nothing.
    public static ClientConfig open(String host, int port) {
        return new ClientConfig(host, port, null, null);
    }

    /// What to tell of a TLS connection that failed: a certificate that is not trusted, or a port without TLS.
    String describeTlsFailure(SSLException failed) {
        for (Throwable cause = failed; cause != null; cause = cause.getCause()) {
            if (cause instanceof GeneralSecurityException) {
                return "no trust in " + hostAndPort() + ": " + failed.getMessage();
            }
        }
        return "no TLS with " + hostAndPort() + ": " + failed.getMessage()
                + "; the port may speak plain text: try without --tls and --ca";
    }

    /// What to tell of a server that ended the connection, or did not answer, before its first answer.
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
}

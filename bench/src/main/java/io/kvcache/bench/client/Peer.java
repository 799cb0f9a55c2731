package io.kvcache.bench.client;

import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/// A server, and how to come in there.
///
/// @param login null where nobody has to say who they are
/// @param tls whom to trust, or null without TLS
public record Peer(
        String host,
        int port,
        @Nullable Login login,
        @Nullable SSLContext tls) {

    /// A server that asks nothing.
    public static Peer open(String host, int port) {
        return new Peer(host, port, null, null);
    }

    /// Host and port, as they stand in an address.
    public String place() {
        return (host.indexOf(':') >= 0 ? "[" + host + "]" : host) + ":" + port;
    }
}

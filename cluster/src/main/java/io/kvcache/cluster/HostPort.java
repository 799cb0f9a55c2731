package io.kvcache.cluster;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.stream.Stream;

/// A host and a port, as in `kv-0:7421` or `[fd00::5]:7421`.
record HostPort(String host, int port) {

    private static final int MAX_PORT = 65_535;

    /// @param setting for the message
    /// @throws IllegalArgumentException when it is neither
    static HostPort parse(String setting, String text) {
        int colon = text.lastIndexOf(':');
        String host = colon < 0 ? "" : text.substring(0, colon);
        if (host.startsWith("[") && host.endsWith("]")) {
            host = host.substring(1, host.length() - 1);
        } else if (host.contains(":")) {
            host = ""; // an IPv6 address whose last group may be the port or not
        }
        int port = colon < 0 ? 0 : parsePort(text.substring(colon + 1));
        if (host.isEmpty() || port < 1) {
            throw new IllegalArgumentException(
                    "%s = '%s'; allowed: host:port or [IPv6 address]:port, with a port of 1 to %s"
                            .formatted(setting, text, MAX_PORT));
        }
        return new HostPort(host, port);
    }

    private static int parsePort(String text) {
        try {
            int port = Integer.parseInt(text);
            return port <= MAX_PORT ? port : 0;
        } catch (NumberFormatException notNumber) {
            return 0;
        }
    }

    /// Asks the resolver; takes as long as that does.
    List<InetSocketAddress> resolve() throws UnknownHostException {
        return Stream.of(InetAddress.getAllByName(host))
                .map(address -> new InetSocketAddress(address, port))
                .toList();
    }
}

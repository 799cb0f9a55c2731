package io.kvcache.transport.remote;

import io.kvcache.transport.aeron.AeronConnector;
import io.kvcache.transport.link.Connector;
import io.kvcache.transport.tcp.TcpConnector;
import java.util.Objects;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// What an address says: who opens connections, and how blocks are to come.
///
/// @param sharedMemory whether the server's memory is read in place
/// @param fabric transports of UCX by which blocks are read one-sided, empty for all; null for none
record Route(
        Connector connector,
        SharedMemoryUse sharedMemory,
        @Nullable String fabric) {

    private static final String SHM = "shm:";
    private static final Pattern UCX = Pattern.compile("ucx:(.*?)(?:\\?tls=([a-z0-9_,]*))?");

    /// Over anything that opens connections.
    Route(Connector connector) {
        this(connector, SharedMemoryUse.AUTO, null);
    }

    /// What Aeron needs is loaded for its own addresses alone.
    ///
    /// @throws IllegalArgumentException when it is none
    static Route of(String address) {
        if (address.startsWith(AeronConnector.SCHEME)) {
            return new Route(new AeronConnector(address));
        }
        Matcher ucx = UCX.matcher(address);
        if (ucx.matches()) {
            return new Route(tcp(ucx.group(1)), SharedMemoryUse.OFF, Objects.requireNonNullElse(ucx.group(2), ""));
        }
        return address.startsWith(SHM)
                ? new Route(tcp(address.substring(SHM.length())), SharedMemoryUse.REQUIRED, null)
                : new Route(tcp(address));
    }

    private static Connector tcp(String address) {
        int colon = address.lastIndexOf(':');
        int port = colon < 1 ? -1 : port(address.substring(colon + 1));
        if (port < 1 || port > 65_535) {
            throw new IllegalArgumentException("address = \"" + address
                    + "\"; allowed: host:port, shm:host:port or ucx:host:port, the port from 1 to 65535, or aeron:…");
        }
        String host = address.substring(0, colon);
        boolean bracketed = host.startsWith("[") && host.endsWith("]");
        return new TcpConnector(bracketed ? host.substring(1, host.length() - 1) : host, port);
    }

    private static int port(String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException noNumber) {
            return -1;
        }
    }
}

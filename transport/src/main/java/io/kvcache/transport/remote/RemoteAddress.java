package io.kvcache.transport.remote;

import io.kvcache.transport.aeron.AeronConnector;
import io.kvcache.transport.link.Connector;
import io.kvcache.transport.tcp.TcpConnector;
import java.util.Objects;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import org.jspecify.annotations.Nullable;

/// What an address says: who opens connections, and how blocks are to come.
///
/// @param choice makes what opens connections
/// @param sharedMemory whether the server's memory is read in place
/// @param fabric transports of UCX by which blocks are read one-sided, empty for all; null for none
record RemoteAddress(
        ConnectorChoice choice,
        SharedMemoryMode sharedMemory,
        @Nullable String fabric) {

    private static final String SHM = "shm:";
    private static final String TLS = "tls:";
    private static final String AUTO = "auto:";
    private static final Pattern UCX = Pattern.compile("ucx:(.*?)(?:\\?tls=([a-z0-9_,]*))?");

    /// How connections are opened.
    sealed interface ConnectorChoice {

        /// As it is.
        record Plain(Connector connector) implements ConnectorChoice {}

        /// Behind TLS.
        record Tls(String host, int port) implements ConnectorChoice {}

        /// By what is fastest.
        record Auto(TransportSelector selector) implements ConnectorChoice {}
    }

    /// Over anything that opens connections.
    RemoteAddress(Connector connector) {
        this(new ConnectorChoice.Plain(connector), SharedMemoryMode.AUTO, null);
    }

    /// What Aeron needs is loaded for its own addresses alone.
    ///
    /// @throws IllegalArgumentException when it is none
    static RemoteAddress of(String address) {
        if (address.startsWith(AeronConnector.SCHEME)) {
            return new RemoteAddress(new AeronConnector(address));
        }
        Matcher ucx = UCX.matcher(address);
        if (ucx.matches()) {
            HostPort hostPort = HostPort.of(ucx.group(1));
            return new RemoteAddress(
                    hostPort.plainConnector(), SharedMemoryMode.OFF, Objects.requireNonNullElse(ucx.group(2), ""));
        }
        if (address.startsWith(TLS)) {
            HostPort hostPort = HostPort.of(address.substring(TLS.length()));
            return new RemoteAddress(
                    new ConnectorChoice.Tls(hostPort.host, hostPort.port), SharedMemoryMode.AUTO, null);
        }
        if (address.startsWith(AUTO)) {
            HostPort hostPort = HostPort.of(address.substring(AUTO.length()));
            return new RemoteAddress(
                    new ConnectorChoice.Auto(new TransportSelector(hostPort.host, hostPort.port)),
                    SharedMemoryMode.AUTO,
                    null);
        }
        boolean shm = address.startsWith(SHM);
        HostPort hostPort = HostPort.of(shm ? address.substring(SHM.length()) : address);
        return new RemoteAddress(
                hostPort.plainConnector(), shm ? SharedMemoryMode.REQUIRED : SharedMemoryMode.AUTO, null);
    }

    /// Whether it goes behind TLS.
    boolean isEncrypted() {
        return choice instanceof ConnectorChoice.Tls;
    }

    /// One of the ways to a server.
    ///
    /// @param trusted for those behind TLS
    ServerList.Server toServer(Supplier<SSLContext> trusted, RemoteOptions options) {
        return switch (choice) {
            case ConnectorChoice.Plain(Connector connector) -> ServerList.Server.of(connector, options);
            case ConnectorChoice.Tls(String host, int port) ->
                ServerList.Server.of(new TcpConnector(host, port, trusted.get()), options);
            case ConnectorChoice.Auto(TransportSelector selector) -> ServerList.Server.of(selector, options);
        };
    }

    private record HostPort(String host, int port) {

        static HostPort of(String address) {
            int colon = address.lastIndexOf(':');
            int port = colon < 1 ? -1 : number(address.substring(colon + 1));
            if (port < 1 || port > 65_535 || address.contains(",")) {
                throw new IllegalArgumentException("address = \"" + address
                        + "\"; allowed: host:port, tls:host:port, shm:host:port, ucx:host:port or auto:host:port, the"
                        + " port from 1 to 65535, or aeron:…; several as several");
            }
            String host = address.substring(0, colon);
            boolean bracketed = host.startsWith("[") && host.endsWith("]");
            return new HostPort(bracketed ? host.substring(1, host.length() - 1) : host, port);
        }

        private static int number(String text) {
            try {
                return Integer.parseInt(text);
            } catch (NumberFormatException noNumber) {
                return -1;
            }
        }

        ConnectorChoice plainConnector() {
            return new ConnectorChoice.Plain(new TcpConnector(host, port));
        }
    }
}

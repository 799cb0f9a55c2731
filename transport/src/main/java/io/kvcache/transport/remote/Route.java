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
/// @param opener makes what opens connections
/// @param sharedMemory whether the server's memory is read in place
/// @param fabric transports of UCX by which blocks are read one-sided, empty for all; null for none
record Route(
        Opener opener,
        SharedMemoryUse sharedMemory,
        @Nullable String fabric) {

    private static final String SHM = "shm:";
    private static final String TLS = "tls:";
    private static final String AUTO = "auto:";
    private static final Pattern UCX = Pattern.compile("ucx:(.*?)(?:\\?tls=([a-z0-9_,]*))?");

    /// How connections are opened.
    sealed interface Opener {

        /// As it is.
        record Plain(Connector connector) implements Opener {}

        /// Behind TLS.
        record Tls(String host, int port) implements Opener {}

        /// By what is fastest.
        record Fastest(Carriers carriers) implements Opener {}
    }

    /// Over anything that opens connections.
    Route(Connector connector) {
        this(new Opener.Plain(connector), SharedMemoryUse.AUTO, null);
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
            Place place = Place.of(ucx.group(1));
            return new Route(place.plain(), SharedMemoryUse.OFF, Objects.requireNonNullElse(ucx.group(2), ""));
        }
        if (address.startsWith(TLS)) {
            Place place = Place.of(address.substring(TLS.length()));
            return new Route(new Opener.Tls(place.host, place.port), SharedMemoryUse.AUTO, null);
        }
        if (address.startsWith(AUTO)) {
            Place place = Place.of(address.substring(AUTO.length()));
            return new Route(new Opener.Fastest(new Carriers(place.host, place.port)), SharedMemoryUse.AUTO, null);
        }
        boolean shm = address.startsWith(SHM);
        Place place = Place.of(shm ? address.substring(SHM.length()) : address);
        return new Route(place.plain(), shm ? SharedMemoryUse.REQUIRED : SharedMemoryUse.AUTO, null);
    }

    /// Whether it goes behind TLS.
    boolean encrypted() {
        return opener instanceof Opener.Tls;
    }

    /// One of the ways to a server.
    ///
    /// @param trusted for those behind TLS
    Ways.Way way(Supplier<SSLContext> trusted, RemoteOptions options) {
        return switch (opener) {
            case Opener.Plain(Connector connector) -> Ways.Way.by(connector, options);
            case Opener.Tls(String host, int port) -> Ways.Way.by(new TcpConnector(host, port, trusted.get()), options);
            case Opener.Fastest(Carriers carriers) -> Ways.Way.by(carriers, options);
        };
    }

    private record Place(String host, int port) {

        static Place of(String address) {
            int colon = address.lastIndexOf(':');
            int port = colon < 1 ? -1 : number(address.substring(colon + 1));
            if (port < 1 || port > 65_535 || address.contains(",")) {
                throw new IllegalArgumentException("address = \"" + address
                        + "\"; allowed: host:port, tls:host:port, shm:host:port, ucx:host:port or auto:host:port, the"
                        + " port from 1 to 65535, or aeron:…; several as several");
            }
            String host = address.substring(0, colon);
            boolean bracketed = host.startsWith("[") && host.endsWith("]");
            return new Place(bracketed ? host.substring(1, host.length() - 1) : host, port);
        }

        private static int number(String text) {
            try {
                return Integer.parseInt(text);
            } catch (NumberFormatException noNumber) {
                return -1;
            }
        }

        Opener plain() {
            return new Opener.Plain(new TcpConnector(host, port));
        }
    }
}

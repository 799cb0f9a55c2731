package io.kvcache.server.resp;

import io.kvcache.server.net.ClientInfo;
import io.kvcache.server.net.Connection;
import io.kvcache.server.net.ProtocolKind;
import java.net.SocketAddress;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/// The connections that a tenant's clients may see: those of the tenant; where there is no other one, all there are.
final class ClientList {

    private final RespContext context;

    ClientList(RespContext context) {
        this.context = context;
    }

    /// In the order in which they came.
    List<Connection> visible() {
        return context.connectionRegistry().openConnections().stream()
                .filter(each ->
                        context.soleTenant() || each.clientInfo().tenant().equals(context.tenant()))
                .toList();
    }

    /// A line for each, in the words of Redis 7.2, all of which programs look for; what there is not here is nought.
    String format(List<Connection> connections) {
        StringBuilder lines = new StringBuilder();
        for (Connection each : connections) {
            lines.append(formatLine(each)).append('\n');
        }
        return lines.toString();
    }

    private String formatLine(Connection connection) {
        ClientInfo said = connection.clientInfo();
        ProtocolKind protocol = connection.protocol();
        long unread = connection.unreadBytes();
        return ("id=%d addr=%s laddr=%s fd=-1 name=%s age=%d idle=%d flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 qbuf=0"
                        + " qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=%d tot-mem=%d events=r"
                        + " cmd=%s user=%s redir=-1 resp=%d lib-name=%s lib-ver=%s protocol=%s")
                .formatted(
                        connection.id(),
                        remoteAddress(connection),
                        localAddress(connection),
                        said.name(),
                        age(connection),
                        seconds(connection.lastReadNanos()),
                        unread,
                        unread,
                        connection.lastRequest().isEmpty() ? "NULL" : connection.lastRequest(),
                        said.tenant(),
                        said.version(),
                        said.library(),
                        said.libraryVersion(),
                        protocol == null ? "unknown" : protocol.name().toLowerCase(Locale.ROOT));
    }

    /// Seconds since a connection was accepted.
    long age(Connection connection) {
        return seconds(connection.acceptedNanos());
    }

    private long seconds(long sinceNanos) {
        return TimeUnit.NANOSECONDS.toSeconds(Math.max(0, context.clock().nanos() - sinceNanos));
    }

    /// The client's address, as `CLIENT KILL` takes it.
    static String remoteAddress(Connection connection) {
        return format(connection.channel().remoteAddress());
    }

    /// The server's address, as `CLIENT KILL` takes it.
    static String localAddress(Connection connection) {
        return format(connection.channel().localAddress());
    }

    private static String format(SocketAddress address) {
        String text = String.valueOf(address);
        return text.substring(text.indexOf('/') + 1);
    }
}

package io.kvcache.server.net;

import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.util.HexFormat;

/// What clients are counted by: an IPv4 address, or the first 64 bits of an IPv6 address, as one host has all the
/// addresses below those.
public final class ClientAddress {

    private static final int PREFIX_BYTES = 8;

    private ClientAddress() {}

    /// The address that a client counts for; empty where there is none.
    public static String of(SocketAddress from) {
        InetAddress address = from instanceof InetSocketAddress inet ? inet.getAddress() : null;
        return switch (address) {
            case null -> "";
            case Inet6Address six -> HexFormat.ofDelimiter(":").formatHex(six.getAddress(), 0, PREFIX_BYTES) + "/64";
            default -> address.getHostAddress();
        };
    }
}

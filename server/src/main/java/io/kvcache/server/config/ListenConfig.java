package io.kvcache.server.config;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;

/// Where clients connect.
///
/// @param address name or number of one of the machine's addresses
/// @param port 0 lets the system choose
/// @param protocol what is spoken there
/// @param withoutAuth whether others than this machine may connect although nobody has to prove who they are
public record ListenConfig(String address, int port, ListenProtocol protocol, boolean withoutAuth) {

    /// Not 6379, so that it starts beside a Redis.
    public static final int DEFAULT_PORT = 7379;

    public ListenConfig {
        if (port < 0 || port > 65_535) {
            throw new IllegalArgumentException("listen.port is " + port + "; it takes 0 to 65535");
        }
        if (!withoutAuth && !isLoopback(address)) {
            throw new IllegalArgumentException("listen.address is " + address
                    + ", which others can reach, and there is no authentication yet; it takes a loopback address,"
                    + " or listen.without_auth: true beside it");
        }
    }

    /// This machine only, all protocols.
    public static ListenConfig defaults() {
        return new ListenConfig("127.0.0.1", DEFAULT_PORT, ListenProtocol.AUTO, false);
    }

    /// The address, looked up.
    public InetSocketAddress socketAddress() {
        return new InetSocketAddress(resolve(address), port);
    }

    private static boolean isLoopback(String address) {
        return resolve(address).isLoopbackAddress();
    }

    private static InetAddress resolve(String address) {
        try {
            return InetAddress.getByName(address);
        } catch (UnknownHostException unknown) {
            throw new IllegalArgumentException(
                    "listen.address is " + address + ", which is not known; it takes an address of this machine",
                    unknown);
        }
    }
}

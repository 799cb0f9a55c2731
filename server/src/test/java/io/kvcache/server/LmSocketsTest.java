package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.DiskTierConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.lm.LmTestClient;
import io.kvcache.server.net.NetLimits;
import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/// A client of `lm://` over real sockets, at a port that tells protocols apart and at one of `lm://` alone.
final class LmSocketsTest {

    private static final int VALUE_BYTES = 3_000_001;

    private static ListenerConfig listener(String name, Set<ListenProtocol> protocols) {
        return new ListenerConfig(name, name, "127.0.0.1", 0, protocols, ListenerAuthConfig.UNRESTRICTED);
    }

    private static TestServer serve(TransportKind transport) {
        AccessConfig access = new AccessConfig(
                List.of(
                        listener("any", Set.of(ListenProtocol.RESP, ListenProtocol.LM, ListenProtocol.HTTP)),
                        listener("lm", Set.of(ListenProtocol.LM))),
                List.of(TenantConfig.defaultTenant()));
        return TestServer.start(transport, NetLimits.defaults(), DiskTierConfig.defaults(), access);
    }

    @ParameterizedTest
    @EnumSource(names = {"EPOLL", "IO_URING", "NIO"})
    void givenAPortOfAllOrOfOne_whenTalkedTo_thenEveryByteIsRight(TransportKind transport) throws IOException {
        TestRequirements.assumeSockets(transport);
        try (TestServer server = serve(transport)) {
            talk(new LmTestClient(), server.port(0), "told");
            talk(new LmTestClient(), server.port(1), "pinned");
        }
    }

    private static void talk(LmTestClient client, int port, String key) throws IOException {
        byte[] value = new byte[VALUE_BYTES];
        new Random(key.hashCode()).nextBytes(value);
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setSoTimeout(60_000);
            ask(socket, client.fail().length, client.ask(LmTestClient.EXIST, key), client.fail());
            ask(socket, client.fail().length, client.ask(LmTestClient.GET, key), client.fail());
            socket.getOutputStream().write(client.put(key, LmTestClient.META, value));
            ask(socket, client.fail().length, client.ask(LmTestClient.EXIST, key), client.success());
            ask(
                    socket,
                    client.fail().length,
                    client.ask(LmTestClient.GET, key),
                    client.reply(200, LmTestClient.META, value));
            ask(socket, client.fail().length, client.ask(LmTestClient.HEALTH, ""), client.success());
            socket.getOutputStream().write(client.put(key, LmTestClient.META, "short".getBytes(US_ASCII)));
            ask(
                    socket,
                    client.fail().length,
                    client.ask(LmTestClient.GET, key),
                    client.reply(200, LmTestClient.META, "short".getBytes(US_ASCII)));
        }
    }

    /// Reads as the clients do: one call for the head of a reply, and what comes is the whole of it.
    private static void ask(Socket socket, int headBytes, byte[] request, byte[] expected) throws IOException {
        socket.getOutputStream().write(request);
        InputStream in = socket.getInputStream();
        byte[] got = new byte[expected.length];
        assertThat(in.read(got, 0, headBytes)).as("of the head, in one call").isEqualTo(headBytes);
        assertThat(in.readNBytes(got, headBytes, expected.length - headBytes)).isEqualTo(expected.length - headBytes);
        assertThat(got).isEqualTo(expected);
    }
}

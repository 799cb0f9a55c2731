package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/// A password file that changes under a running server.
@Timeout(300)
@Tag("slow")
final class FileReloadTest {

    private static final String OK = "+OK\r\n";

    @TempDir
    private Path folder = Path.of("");

    private static String ask(Socket socket, String request) throws IOException {
        socket.setSoTimeout(60_000);
        socket.getOutputStream().write((request + "\r\n").getBytes(US_ASCII));
        StringBuilder line = new StringBuilder();
        while (line.indexOf("\n") < 0) {
            line.append((char) socket.getInputStream().read());
        }
        return line.toString();
    }

    private static String login(TestServer server, String password) throws IOException {
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            return ask(socket, "AUTH blue " + password);
        }
    }

    private Path secret(String name, String text) throws IOException {
        Path file = Files.writeString(folder.resolve(name), text);
        return Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
    }

    @Test
    void givenAPasswordFile_whenItChanges_thenNewClientsNeedTheNewOneAndOldOnesGoOn() throws Exception {
        Path file = secret("passwords", "sky\n");
        TenantConfig blue = new TenantConfig("blue", "blue", "blue", null, file.toString(), 0);
        ListenerConfig asks = new ListenerConfig(
                "auth",
                "auth",
                "127.0.0.1",
                0,
                Set.of(ListenProtocol.RESP),
                new ListenerAuthConfig(null, true, false, List.of(), List.of()));
        try (TestServer server =
                        TestServer.start(new AccessConfig(List.of(asks), List.of(blue, TenantConfig.defaultTenant())));
                Socket old = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            assertThat(ask(old, "AUTH blue sky")).isEqualTo(OK);
            assertThat(ask(old, "SET k v")).isEqualTo(OK);

            Path next = secret("next", "a-new-password\n");
            Files.move(next, file, StandardCopyOption.ATOMIC_MOVE);
            String answer = login(server, "sky");
            while (answer.equals(OK)) {
                answer = login(server, "sky");
            }

            assertThat(answer).startsWith("-WRONGPASS");
            assertThat(login(server, "a-new-password")).isEqualTo(OK);
            assertThat(ask(old, "STRLEN k")).isEqualTo(":1\r\n");
        }
    }
}

package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.server.CacheServer;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

/// Runs the command line's clients against servers that require authentication. The JDK's keytool makes the
/// certificate.
@Timeout(300)
@Tag("slow")
final class ClientAccessTest {

    @TempDir
    private Path folder = Path.of("");

    private String password = "";
    private String wrong = "";

    @BeforeEach
    void write() throws Exception {
        Path secret = Files.writeString(folder.resolve("password"), "of blue\n");
        Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("rw-------"));
        password = secret.toString();
        wrong = Files.writeString(folder.resolve("wrong"), "of green\n").toString();
    }

    private CacheServer server(Map<String, String> more) throws Exception {
        Map<String, String> settings = new HashMap<>(Map.of(
                "memory.host_bytes", "96MiB",
                "tenants.0.name", "blue",
                "tenants.0.password_file", password,
                "listeners.0.port", "0",
                "listeners.0.protocols", "resp, http, pages",
                "listeners.0.auth", "true"));
        settings.putAll(more);
        Map<String, ConfigReader.Option> options = new HashMap<>();
        settings.forEach((path, text) -> options.put(path, new ConfigReader.Option(path, text)));
        return CacheServer.start(
                new ConfigReader(HostResources.detect(), Map.of()).read(ConfigReader.Source.NONE, options));
    }

    private static String run(int expected, String... arguments) {
        StringWriter said = new StringWriter();
        CommandLine line = Kvcache.commandLine();
        line.setOut(new PrintWriter(said));
        line.setErr(new PrintWriter(said));
        assertThat(line.execute(arguments)).as("%s", said).isEqualTo(expected);
        return said.toString();
    }

    @Test
    void givenAServerWithPasswords_whenAsked_thenOnlyWhoKnowsOneIsAnswered() throws Exception {
        try (CacheServer server = server(Map.of())) {
            String port = "--port=" + server.address().getPort();
            String mine = "--password-file=" + password;
            assertThat(run(0, "ping", port, "--user=blue", mine)).isEqualTo("PONG\n");
            assertThat(run(0, "top", "--once", port, "--user=blue", mine))
                    .contains("what is yours", "blue ")
                    .doesNotContain("MiB (", "default");
            assertThat(run(0, "top", "--once", "--view=prefixes", port, "--user=blue", mine))
                    .contains("0 blocks, 0.0 MiB in all prefixes");
            assertThat(run(0, "top", "--once", "--view=misses", port, "--user=blue", mine))
                    .contains("REASON");
            server.cache().register(Namespace.objects("\u001b[31m\u009b\u202e", "blue"));
            assertThat(run(0, "top", "--once", port, "--user=blue", mine))
                    .contains("?[31m?? (blue)")
                    .doesNotContain("\u001b", "\u009b", "\u202e");
            assertThat(run(1, "disk", "list", port, "--user=blue", mine))
                    .contains("the server says 403", "admin: true at a tenant");
            assertThat(run(1, "ping", port))
                    .contains("the server says: NOAUTH", "give --user and --password-file, or set KVCACHE_PASSWORD");
            assertThat(run(1, "top", "--once", port))
                    .contains("the server says 401", "give --user and --password-file, or set KVCACHE_PASSWORD");
            assertThat(run(1, "ping", port, "--user=blue", "--password-file=" + wrong))
                    .contains("the server says: WRONGPASS")
                    .doesNotContain("of green");
            assertThat(run(1, "ping", port, "--user=green", mine)).contains("WRONGPASS");
            assertThat(run(1, "ping", port, "--user=blue")).contains("--user blue without a password");
            assertThat(run(1, "ping", port, "--password-file=" + folder.resolve("none")))
                    .contains("there is no password file");
        }
    }

    @Test
    void givenAHostNameThatIsUnknown_whenAsked_thenThatIsSaid() {
        String unknown = "the host name nohost.invalid is unknown; check --host";
        assertThat(run(1, "ping", "--host", "nohost.invalid")).contains(unknown);
        assertThat(run(1, "top", "--once", "--host", "nohost.invalid")).contains(unknown);
    }

    @Test
    void givenAServerWithTls_whenAsked_thenItsCertificateMustBeBelieved() throws Exception {
        Path store = folder.resolve("server.p12");
        keytool(store);
        String secret = Files.writeString(folder.resolve("store"), "changeit\n").toString();
        try (CacheServer server = server(Map.of(
                "listeners.0.tls.keystore",
                store.toString(),
                "listeners.0.tls.password_file",
                secret,
                "tenants.0.admin",
                "true"))) {
            String port = "--port=" + server.address().getPort();
            String[] mine = {"--user=blue", "--password-file=" + password};
            String ca = "--ca=" + certificate(store);
            assertThat(run(0, "ping", port, mine[0], mine[1], ca)).isEqualTo("PONG\n");
            assertThat(run(0, "top", "--once", port, mine[0], mine[1], ca)).contains("of 96 MiB");
            assertThat(run(1, "ping", port, mine[0], mine[1], "--tls"))
                    .contains("no trust in 127.0.0.1:", "give it with --ca FILE");
            assertThat(run(1, "top", "--once", port, mine[0], mine[1], "--tls"))
                    .contains("no trust in 127.0.0.1:", "give it with --ca FILE");
            assertThat(run(1, "ping", port, "--ca=" + password)).contains("has no certificate in PEM");
            assertThat(run(1, "ping", port)).contains("the port may speak TLS: try --tls, or --ca FILE");
            assertThat(run(1, "ping", port, mine[0], mine[1])).contains("the port may speak TLS: try --tls");
            assertThat(run(1, "top", "--once", port)).contains("the port may speak TLS: try --tls, or --ca FILE");
        }
    }

    @Test
    void givenAServerWithoutTls_whenAskedByTls_thenThatIsSaid() throws Exception {
        try (CacheServer server = server(Map.of())) {
            String port = "--port=" + server.address().getPort();
            for (String command : List.of("ping", "stat")) {
                assertThat(run(1, command, port, "--tls"))
                        .contains("no TLS with 127.0.0.1:", "the port may not use TLS: try without --tls and --ca");
            }
            assertThat(run(1, "top", "--once", port, "--tls")).contains("try without --tls and --ca");
        }
    }

    @Test
    void givenAListenerWithoutPages_whenWatched_thenTheSettingIsNamed() throws Exception {
        try (CacheServer server = server(Map.of("listeners.0.protocols", "resp, http"))) {
            String[] mine = {"--port=" + server.address().getPort(), "--user=blue", "--password-file=" + password};
            String setting = "add pages to listeners.0.protocols";
            assertThat(run(1, "top", "--once", mine[0], mine[1], mine[2])).contains("404", setting);
            assertThat(run(1, "disk", "list", mine[0], mine[1], mine[2])).contains("404", setting);
            assertThat(run(1, "disk", "reopen", "0", mine[0], mine[1], mine[2])).contains("404", setting);
            assertThat(run(1, "events", mine[0], mine[1], mine[2])).contains("404", setting);
        }
    }

    @Test
    void givenAListenerWithoutHttp_whenWatched_thenItsProtocolsAreNamed() throws Exception {
        try (CacheServer server = server(Map.of("listeners.0.protocols", "resp"))) {
            assertThat(run(1, "top", "--once", "--port=" + server.address().getPort()))
                    .contains("its listener lacks this protocol", "listeners.N.protocols");
        }
    }

    private static void keytool(Path store) throws Exception {
        String tool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
        String arguments = "-genkeypair -alias server -keyalg EC -groupname secp256r1 -dname CN=here"
                + " -ext SAN=IP:127.0.0.1 -storetype PKCS12 -storepass changeit -validity 2 -keystore";
        List<String> command = new ArrayList<>(List.of(tool));
        command.addAll(List.of(arguments.split(" ", -1)));
        command.add(store.toString());
        Process keytool = new ProcessBuilder(command).redirectErrorStream(true).start();
        String said = new String(keytool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(keytool.waitFor()).as(said).isZero();
    }

    private Path certificate(Path store) throws Exception {
        KeyStore keys = KeyStore.getInstance(store.toFile(), "changeit".toCharArray());
        String body = Base64.getMimeEncoder()
                .encodeToString(keys.getCertificate("server").getEncoded());
        return Files.writeString(
                folder.resolve("ca.pem"), "-----BEGIN CERTIFICATE-----\n" + body + "\n-----END CERTIFICATE-----\n");
    }
}

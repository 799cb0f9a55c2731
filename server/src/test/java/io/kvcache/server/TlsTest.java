package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.server.MaintenanceScheduler.FileReloader;
import io.kvcache.server.access.ReloadableTls;
import io.kvcache.server.config.AccessConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TlsConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.server.config.TransportConfig.AeronConfig;
import io.kvcache.server.config.TransportConfig.UcxConfig;
import io.kvcache.server.metrics.MetricLint;
import io.kvcache.server.net.Connection.CloseReason;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.client.RemoteKvCacheBuilder;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.Socket;
import java.net.SocketException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.FileTime;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.time.Instant;
import java.util.Base64;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;

/// Every protocol behind TLS, with certificates made here by the JDK's keytool.
@Tag("slow")
final class TlsTest {

    /// Of all keystores that are made here.
    static final String PASSWORD = "changeit";

    @TempDir
    private static Path shared = Path.of("");

    @TempDir
    private Path directory = Path.of("");

    /// One made once for all tests, as a test may write over its own.
    private Path keystore(String name) throws Exception {
        Path made = shared.resolve(name + ".p12");
        if (Files.notExists(made)) {
            makeKeystore(name, made);
        }
        return Files.copy(made, directory.resolve(name + ".p12"));
    }

    /// Makes a keystore with a key and a certificate of its own, for this machine.
    static void makeKeystore(String name, Path file) throws Exception {
        Process keytool = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "keytool")
                                .toString(),
                        "-genkeypair",
                        "-alias",
                        "server",
                        "-keyalg",
                        "EC",
                        "-groupname",
                        "secp256r1",
                        "-dname",
                        "CN=" + name,
                        "-ext",
                        "SAN=IP:127.0.0.1,DNS:localhost",
                        "-storetype",
                        "PKCS12",
                        "-keystore",
                        file.toString(),
                        "-storepass",
                        PASSWORD,
                        "-validity",
                        "2")
                .redirectErrorStream(true)
                .start();
        String said = new String(keytool.getInputStream().readAllBytes(), US_ASCII);
        assertThat(keytool.waitFor()).as(said).isZero();
    }

    private static KeyStore load(Path file) throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(file)) {
            store.load(in, PASSWORD.toCharArray());
        }
        return store;
    }

    private TlsConfig ofStore(Path file) throws IOException {
        Path password = Files.writeString(directory.resolve("password"), PASSWORD + "\n");
        return new TlsConfig("tls", null, null, file.toString(), password.toString());
    }

    private TlsConfig ofPair(Path file) throws Exception {
        KeyStore store = load(file);
        Path certificate = pem("CERTIFICATE", store.getCertificate("server").getEncoded());
        Path key = pem(
                "PRIVATE KEY", store.getKey("server", PASSWORD.toCharArray()).getEncoded());
        return new TlsConfig("tls", certificate.toString(), key.toString(), null, null);
    }

    private Path pem(String kind, byte[] content) throws IOException {
        String text = "-----BEGIN " + kind + "-----\n"
                + Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content) + "\n-----END " + kind
                + "-----\n";
        return Files.writeString(directory.resolve(kind.replace(' ', '-') + ".pem"), text);
    }

    private static TestServer serve(TlsConfig tls) {
        return TestServer.start(new AccessConfig(
                List.of(new ListenerConfig(
                        "tls",
                        "tls",
                        "127.0.0.1",
                        0,
                        Set.of(ListenProtocol.RESP, ListenProtocol.LM, ListenProtocol.HTTP, ListenProtocol.PAGES),
                        ListenerAuthConfig.UNRESTRICTED,
                        tls)),
                List.of(TenantConfig.defaultTenant())));
    }

    private static SSLContext trusting(Path keystore) throws Exception {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("server", load(keystore).getCertificate("server"));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private static SSLSocket connect(TestServer server, SSLContext context) throws IOException {
        SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket("127.0.0.1", server.port());
        socket.setSoTimeout(60_000);
        return socket;
    }

    @Test
    void givenCertificates_whenMetricsAreRead_thenTheirEndsAreThereAndPrometheusRulesHold() throws Exception {
        Path file = keystore("ends");
        X509Certificate certificate = (X509Certificate) load(file).getCertificate("server");
        long end = certificate.getNotAfter().toInstant().getEpochSecond();
        TlsConfig store = ofStore(file);
        TlsConfig pair = ofPair(file);
        AccessConfig access = new AccessConfig(
                List.of(
                        ListenerConfig.onLoopback(0),
                        listener(
                                1,
                                new TlsConfig("listeners.1.tls", null, null, store.keystore(), store.passwordFile())),
                        listener(2, new TlsConfig("listeners.2.tls", pair.certificate(), pair.key(), null, null))),
                List.of(TenantConfig.defaultTenant()));
        try (TestServer server = TestServer.start(access);
                HttpTestClient httpTestClient = new HttpTestClient(server.port())) {
            String metrics = new String(httpTestClient.get("/metrics").body(), US_ASCII);
            for (int listener = 1; listener <= 2; listener++) {
                String meter = "kv_tls_certificate_expiry_seconds\\{setting=\"listeners." + listener + ".tls\"} (\\S+)";
                Matcher found = Pattern.compile(meter).matcher(metrics);
                assertThat(found.find()).as(metrics).isTrue();
                assertThat((long) Double.parseDouble(found.group(1))).isEqualTo(end);
            }
            assertThat(MetricLint.violations(metrics)).isEmpty();
        }
    }

    private static ListenerConfig listener(int number, TlsConfig tls) {
        String path = "listeners." + number;
        return new ListenerConfig(
                path, path, "127.0.0.1", 0, EnumSet.of(ListenProtocol.RESP), ListenerAuthConfig.UNRESTRICTED, tls);
    }

    @Test
    @SuppressWarnings("deprecation") // what replaces it takes a trust store as a file
    void givenPemFiles_whenEveryProtocolIsSpoken_thenAllSeeTheSameLargeValue() throws Exception {
        Path keystore = keystore("one");
        byte[] value = new byte[5_000_000];
        new Random(1).nextBytes(value);
        try (TestServer server = serve(ofPair(keystore))) {
            SSLContext context = trusting(keystore);
            try (Jedis jedis = new Jedis(
                    new HostAndPort("127.0.0.1", server.port()),
                    DefaultJedisClientConfig.builder()
                            .ssl(true)
                            .timeoutMillis(60_000)
                            .sslSocketFactory(context.getSocketFactory())
                            .build())) {
                jedis.set("k".getBytes(US_ASCII), value);
                assertThat(jedis.get("k".getBytes(US_ASCII))).isEqualTo(value);
            }
            try (SSLSocket http = connect(server, context)) {
                http.getOutputStream()
                        .write("GET /v1/objects/k HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                                .getBytes(US_ASCII));
                byte[] reply = http.getInputStream().readAllBytes();
                assertThat(reply).startsWith("HTTP/1.1 200".getBytes(US_ASCII)).endsWith(value);
            }
            try (SSLSocket lm = connect(server, context)) {
                byte[] exist = ByteBuffer.allocate(186) // command, seven numbers, key and blanks
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .putInt(3)
                        .put(new byte[32])
                        .put(("k" + " ".repeat(149)).getBytes(US_ASCII))
                        .array();
                lm.getOutputStream().write(exist);
                assertThat(ByteBuffer.wrap(lm.getInputStream().readNBytes(8))
                                .order(ByteOrder.LITTLE_ENDIAN)
                                .getInt())
                        .isEqualTo(200);
            }
        }
    }

    @Test
    void givenAKeystore_whenItChanges_thenItIsReadAgainUnlessItIsWrong() throws Exception {
        Path one = keystore("one");
        Path two = keystore("two");
        Path used = Files.copy(one, directory.resolve("used.p12"));
        ReloadableTls reloadableTls = ReloadableTls.open(ofStore(used));
        Object before = reloadableTls.context();
        FileReloader watched = new FileReloader("tls files", reloadableTls.files(), reloadableTls::reload);

        watched.run();
        assertThat(reloadableTls.context()).isSameAs(before);
        Files.write(used, new byte[] {1, 2, 3});
        watched.run();
        assertThat(reloadableTls.context()).as("a file that is wrong").isSameAs(before);
        Files.write(used, Files.readAllBytes(two));
        Files.setLastModifiedTime(used, FileTime.from(Instant.parse("2030-01-01T00:00:00Z")));
        watched.run();
        assertThat(reloadableTls.context()).isNotSameAs(before);
    }

    @Test
    @Timeout(300)
    void givenAServerThatRuns_whenItsKeystoreChanges_thenNewConnectionsSeeTheNewOneAndOldOnesGoOn() throws Exception {
        Path one = keystore("one");
        Path two = keystore("two");
        Path used = Files.copy(one, directory.resolve("used.p12"));
        try (TestServer server = serve(ofStore(used));
                SSLSocket old = connect(server, trusting(one))) {
            assertThat(ping(old)).isEqualTo("CN=one");

            Files.move(two, used, StandardCopyOption.ATOMIC_MOVE);

            SSLContext trusting = trusting(used);
            String seen = "";
            while (seen.isEmpty()) {
                try (SSLSocket next = connect(server, trusting)) {
                    seen = ping(next);
                } catch (SSLException stillTheOther) {
                    Pause.briefly();
                }
            }
            assertThat(seen).isEqualTo("CN=two");
            assertThat(ping(old)).isEqualTo("CN=one");
        }
    }

    /// Each costs the server a signature and the client next to nothing.
    @Test
    void givenAClientOfTls12_whenItRenegotiates_thenTheConnectionEnds() throws Exception {
        Path keystore = keystore("one");
        TransportConfig transport = new TransportConfig(
                "127.0.0.1:0",
                null,
                false,
                32,
                Duration.ofSeconds(10),
                "off",
                AeronConfig.disabled(),
                ofStore(keystore),
                UcxConfig.disabled());
        SSLContext context = trusting(keystore);
        try (TestServer server = serve(ofStore(keystore));
                SSLSocket socket = connect(server, context)) {
            socket.setEnabledProtocols(new String[] {"TLSv1.2"});
            ping(socket);
            assertThat(socket.getSession().getProtocol()).isEqualTo("TLSv1.2");
            assertRenegotiationEnds(socket);
            try (SSLSocket next = connect(server, context)) {
                assertThat(ping(next)).isEqualTo("CN=one");
                next.startHandshake(); // of TLS 1.3 only keys change
                assertThat(ping(next)).isEqualTo("CN=one");
            }
        }
        try (TestServer server = TestServer.start(RemoteEndpointTest.nobodyInParticular(), transport);
                SSLSocket socket = (SSLSocket) context.getSocketFactory()
                        .createSocket(
                                "127.0.0.1",
                                Objects.requireNonNull(server.server().remoteAddress())
                                        .getPort())) {
            socket.setSoTimeout(60_000);
            socket.setEnabledProtocols(new String[] {"TLSv1.2"});
            socket.startHandshake();
            assertRenegotiationEnds(socket);
        }
    }

    private static void assertRenegotiationEnds(SSLSocket socket) {
        assertThatThrownBy(() -> {
                    socket.startHandshake();
                    if (socket.getInputStream().read() < 0) {
                        throw new SocketException("ended");
                    }
                })
                .isInstanceOfAny(SSLException.class, SocketException.class);
    }

    /// Asks for an answer; whose certificate the connection has.
    private static String ping(SSLSocket socket) throws IOException {
        socket.getOutputStream().write("PING\r\n".getBytes(US_ASCII));
        assertThat(new String(socket.getInputStream().readNBytes(7), US_ASCII)).isEqualTo("+PONG\r\n");
        SSLSession session = socket.getSession();
        return session.getPeerPrincipal().getName();
    }

    private static RemoteKvCacheBuilder remote(TestServer server, String scheme) {
        return RemoteKvCache.builder(scheme + "127.0.0.1:"
                + Objects.requireNonNull(server.server().remoteAddress()).getPort());
    }

    @Test
    @Timeout(120)
    void givenTlsForOtherJvms_whenTheKeystoreChanges_thenNewClientsSeeTheNewOneAndOldOnesGoOn() throws Exception {
        Path one = keystore("one");
        Path two = keystore("two");
        Path used = Files.copy(one, directory.resolve("used.p12"));
        TransportConfig transport = new TransportConfig(
                "127.0.0.1:0",
                null,
                false,
                32,
                Duration.ofSeconds(10),
                "off",
                AeronConfig.disabled(),
                ofStore(used),
                UcxConfig.disabled());
        try (TestServer server = TestServer.start(RemoteEndpointTest.nobodyInParticular(), transport);
                RemoteKvCache before =
                        remote(server, "tls:").trust(trusting(one)).connect()) {
            before.register(RemoteTestBlocks.SPACE);
            BlockChain chain = RemoteTestBlocks.chain(RemoteTestBlocks.SPACE, 4);
            RemoteTestBlocks.put(before, chain);
            assertThatThrownBy(() -> remote(server, "").connect().close())
                    .hasMessageContaining("no TLS; allowed: TLS, which clients speak to tls:host:port");
            assertThatThrownBy(() -> remote(server, "tls:")
                            .trust(trusting(two))
                            .connect()
                            .close())
                    .hasMessageContaining("unable to find valid certification path");

            Files.move(two, used, StandardCopyOption.ATOMIC_MOVE);

            SSLContext trusting = trusting(used);
            boolean in = false;
            while (!in) {
                try (RemoteKvCache next = remote(server, "tls:").trust(trusting).connect()) {
                    next.register(RemoteTestBlocks.SPACE);
                    assertThat(RemoteTestBlocks.verifiedBlocks(next, chain)).isEqualTo(4);
                    in = true;
                } catch (UncheckedIOException stillTheOther) {
                    Pause.briefly();
                }
            }
            assertThat(RemoteTestBlocks.verifiedBlocks(before, chain)).isEqualTo(4);
        }
    }

    @Test
    void givenFilesThatAreWrong_whenOpened_thenItIsSaidWhichWithoutSecrets() throws Exception {
        Path one = keystore("one");
        TlsConfig good = ofStore(one);
        Path wrong = Files.writeString(directory.resolve("wrong"), "sesame");
        assertThatThrownBy(() ->
                        ReloadableTls.open(new TlsConfig("listen.tls", null, null, good.keystore(), wrong.toString())))
                .hasMessageStartingWith("listen.tls cannot be used")
                .hasMessageNotContaining("sesame");
        assertThatThrownBy(() -> ReloadableTls.open(new TlsConfig("listen.tls", "/none", "/none", null, null)))
                .hasMessageContaining("/none cannot be read");
    }

    @Test
    void givenAKeyOfAnotherCertificate_whenOpened_thenItIsRefused() throws Exception {
        TlsConfig one = ofPair(keystore("one"));
        Path key = Files.copy(Path.of(Objects.requireNonNull(one.key())), directory.resolve("one.key"));
        TlsConfig two = ofPair(keystore("two"));
        assertThatThrownBy(() ->
                        ReloadableTls.open(new TlsConfig("listen.tls", two.certificate(), key.toString(), null, null)))
                .hasMessageStartingWith("listen.tls cannot be used: the key in " + key
                        + " does not belong to the certificate in " + two.certificate());
    }

    @Test
    void givenFilesOfAnotherFormat_whenOpened_thenTheFileAndTheRemedyAreNamed() throws Exception {
        TlsConfig pair = ofPair(keystore("one"));
        String text = Files.writeString(directory.resolve("text"), "this is text, and not what it should be")
                .toString();
        assertThatThrownBy(() -> ReloadableTls.open(new TlsConfig("listen.tls", text, pair.key(), null, null)))
                .hasMessageStartingWith("listen.tls cannot be used: " + text + " has no certificate in PEM");
        assertThatThrownBy(() -> ReloadableTls.open(new TlsConfig("listen.tls", pair.certificate(), text, null, null)))
                .hasMessageStartingWith("listen.tls cannot be used: " + text + " has no private key in PKCS#8 PEM")
                .hasMessageContaining("openssl pkcs8 -topk8");
        assertThatThrownBy(() -> ReloadableTls.open(new TlsConfig("listen.tls", null, null, text, null)))
                .hasMessageStartingWith("listen.tls cannot be used: " + text + " is not a PKCS12 keystore; make one");
    }

    @Test
    void givenAClientThatLeavesInTheHandshake_whenItEnds_thenTheReasonIsNotNull() throws Exception {
        try (TestServer server = serve(ofPair(keystore("one")))) {
            try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
                socket.getOutputStream().write(new byte[] {22, 3, 1, 2, 0, 1}); // a part of a hello
            }
            awaitClosed(server, 1);
            assertThat(server.server().lastTlsFailure())
                    .contains("127.0.0.1:" + server.port() + ": ")
                    .contains("closed the connection before the handshake was done")
                    .doesNotContain("null");
        }
    }

    @Test
    void givenAClientThatDoesNotTrust_whenItEnds_thenTheListenerAndTheReasonAreKept() throws Exception {
        try (TestServer server = serve(ofPair(keystore("one")))) {
            try (SSLSocket socket = connect(server, trusting(keystore("two")))) {
                assertThatThrownBy(socket::startHandshake).isInstanceOf(SSLException.class);
            }
            awaitClosed(server, 1);
            assertThat(server.server().lastTlsFailure())
                    .contains("127.0.0.1:" + server.port() + ": ")
                    .containsIgnoringCase("certificate");
        }
    }

    @Test
    void givenClientsThatSpeakNoTls_whenTheyEnd_thenTheReasonIsCounted() throws Exception {
        Path keystore = keystore("one");
        try (TestServer server = serve(ofPair(keystore))) {
            try (Socket plain = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
                plain.setSoTimeout(60_000);
                plain.getOutputStream().write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(US_ASCII));
                plain.getInputStream().readAllBytes();
            }
            awaitClosed(server, 1);
            try (Socket half = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
                // A record of a handshake that announces 512 bytes, of which a few come.
                half.getOutputStream().write(new byte[] {22, 3, 1, 2, 0, 1, 0, 1, (byte) 252, 3, 3});
                half.shutdownOutput();
                half.setSoTimeout(60_000);
                half.getInputStream().readAllBytes();
            }
            awaitClosed(server, 2);
        }
    }

    private static void awaitClosed(TestServer server, long count) {
        while (server.server().closedCount(CloseReason.TLS_FAILED) < count) {
            Pause.briefly();
        }
    }
}

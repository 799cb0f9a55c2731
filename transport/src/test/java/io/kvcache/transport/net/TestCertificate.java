package io.kvcache.transport.net;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import java.util.List;
import java.util.function.Supplier;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;

/// A certificate that signs itself, made by the JDK's keytool.
///
/// @param context of a server that has it
/// @param pem for those who are to trust it
public record TestCertificate(SSLContext context, Path pem) {

    private static final String PASSWORD = "changeit";

    /// Makes one.
    ///
    /// @param names that it is good for: `IP:127.0.0.1`
    public static TestCertificate make(Path folder, String name, String names) {
        try {
            Path file = folder.resolve(name + ".p12");
            keytool(file, name, names);
            KeyStore store = KeyStore.getInstance("PKCS12");
            try (InputStream in = Files.newInputStream(file)) {
                store.load(in, PASSWORD.toCharArray());
            }
            KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            keys.init(store, PASSWORD.toCharArray());
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys.getKeyManagers(), null, null);
            String encoded = Base64.getMimeEncoder()
                    .encodeToString(store.getCertificate(name).getEncoded());
            Path pem = Files.writeString(
                    folder.resolve(name + ".pem"),
                    "-----BEGIN CERTIFICATE-----\n" + encoded + "\n-----END CERTIFICATE-----\n");
            return new TestCertificate(context, pem);
        } catch (IOException failed) {
            throw new UncheckedIOException(failed);
        } catch (GeneralSecurityException | InterruptedException failed) {
            throw new IllegalStateException(failed);
        }
    }

    private static void keytool(Path file, String name, String names) throws IOException, InterruptedException {
        String tool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
        String arguments = "-genkeypair -alias %s -keyalg EC -groupname secp256r1 -dname CN=%s -ext SAN=%s"
                .formatted(name, name, names);
        ProcessBuilder command = new ProcessBuilder((tool + " " + arguments).split(" "));
        command.command().addAll(List.of("-storetype", "PKCS12", "-keystore", file.toString()));
        command.command().addAll(List.of("-storepass", PASSWORD, "-validity", "2"));
        Process keytool = command.redirectErrorStream(true).start();
        String said = new String(keytool.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(keytool.waitFor()).as(said).isZero();
    }

    /// For the endpoint of a server that has it.
    public Supplier<SSLEngine> engines() {
        return () -> {
            SSLEngine engine = context.createSSLEngine();
            engine.setUseClientMode(false);
            return engine;
        };
    }
}

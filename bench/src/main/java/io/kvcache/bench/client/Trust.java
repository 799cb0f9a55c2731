package io.kvcache.bench.client;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.util.Collection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.jspecify.annotations.Nullable;

/// Whose certificates a client believes.
public final class Trust {

    private Trust() {}

    /// Those that the JDK believes.
    public static SSLContext usual() throws IOException {
        return of((KeyStore) null, "the JDK's certificates");
    }

    /// Those of a file alone: authorities, or the server's own.
    ///
    /// @param file PEM with one certificate or more
    /// @throws IOException when it cannot be read or has none; the message names it
    public static SSLContext of(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file)) {
            Collection<? extends Certificate> found =
                    CertificateFactory.getInstance("X.509").generateCertificates(in);
            if (found.isEmpty()) {
                throw new IOException(file + " has no certificate; it takes PEM");
            }
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            int number = 0;
            for (Certificate each : found) {
                store.setCertificateEntry("certificate-" + number++, each);
            }
            return of(store, file.toString());
        } catch (CertificateException malformed) {
            throw new IOException(file + " is no PEM with certificates: " + malformed.getMessage(), malformed);
        } catch (GeneralSecurityException failed) {
            throw new IOException(file + " cannot be used: " + failed.getMessage(), failed);
        }
    }

    private static SSLContext of(@Nullable KeyStore store, String name) throws IOException {
        try {
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, trust.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException failed) {
            throw new IOException(name + " cannot be used: " + failed.getMessage(), failed);
        }
    }
}

package io.kvcache.transport.net;

import java.io.IOException;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.X509Certificate;
import java.util.List;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/// TLS contexts for clients, by the certificates that they trust.
public final class ClientTlsContexts {

    private ClientTlsContexts() {}

    /// Returns a context that trusts the JVM's own authorities, or those that it was started with.
    public static SSLContext systemDefault() {
        try {
            return SSLContext.getDefault();
        } catch (GeneralSecurityException broken) {
            throw new IllegalStateException("this JVM has no TLS", broken);
        }
    }

    /// Returns a context that trusts only the certificates in a file, and those signed by them.
    ///
    /// @param pem one or more certificates
    /// @throws IOException when it cannot be used; the message names it
    public static SSLContext of(Path pem) throws IOException {
        List<X509Certificate> all = PemFiles.readCertificates(pem);
        try {
            KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
            store.load(null, null);
            int number = 0;
            for (X509Certificate each : all) {
                store.setCertificateEntry("trusted-" + number++, each);
            }
            TrustManagerFactory managers = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            managers.init(store);
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(null, managers.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException unusable) {
            throw new IOException(pem + " cannot be used: " + unusable.getMessage(), unusable);
        }
    }
}

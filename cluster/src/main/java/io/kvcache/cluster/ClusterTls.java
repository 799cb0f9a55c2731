package io.kvcache.cluster;

import io.kvcache.transport.net.PemFiles;
import java.io.IOException;
import java.net.Socket;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.Principal;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.time.Instant;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import javax.naming.InvalidNameException;
import javax.naming.ldap.LdapName;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManager;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;
import javax.net.ssl.X509KeyManager;

/// The certificate of a server among the servers of its cluster, its key, and the authority of their certificates, as
/// the files were at the last load.
///
/// A connection needs a certificate of the authority on both sides. It says nothing about who is behind a message, as a
/// member speaks for itself over any connection. So a server signs what it tells about itself, and others take it only
/// if the certificate has the server's name: as CN, or as a DNS name.
///
/// **Threads.** Any.
public final class ClusterTls implements ClusterProof {

    /// Type of a DNS name among the alternative names of a certificate.
    private static final Integer DNS_NAME = 2;

    private final Path certificate;
    private final Path key;
    private final Path authority;
    private final SSLContext context;
    private volatile Loaded loaded;

    private ClusterTls(Path certificate, Path key, Path authority) throws IOException {
        this.certificate = certificate;
        this.key = key;
        this.authority = authority;
        loaded = load();
        try {
            context = SSLContext.getInstance("TLSv1.3");
            context.init(new KeyManager[] {new CurrentKeys()}, new TrustManager[] {new CurrentTrust()}, null);
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this JVM has no TLS 1.3", missing);
        }
    }

    /// What the files had at one moment.
    private record Loaded(
            List<X509Certificate> chain, PrivateKey key, X509KeyManager keys, X509ExtendedTrustManager trust) {}

    /// Reads the files.
    ///
    /// @param certificate in PEM, the server's own first and its chain behind it
    /// @param key in PKCS#8 PEM, not encrypted
    /// @param authority in PEM, one or more certificates
    /// @throws IOException when they cannot be used; the message names the file, and nothing secret
    public static ClusterTls open(Path certificate, Path key, Path authority) throws IOException {
        return new ClusterTls(certificate, key, authority);
    }

    /// Reads the files again. Connections that there are stay as they are.
    ///
    /// @throws IOException when they cannot be used; what was read before stays
    public void reload() throws IOException {
        loaded = load();
    }

    /// When it ends; of a chain, when the first of it does.
    public Instant expiresAt() {
        return loaded.chain.stream()
                .map(each -> each.getNotAfter().toInstant())
                .min(Comparator.naturalOrder())
                .orElseThrow();
    }

    /// The files that it is made of.
    public List<Path> files() {
        return List.of(certificate, key, authority);
    }

    /// For all connections; follows [#reload].
    SSLContext context() {
        return context;
    }

    /// Checks the name.
    ///
    /// @throws IOException when the certificate is not for the node of this name
    public void requireName(String node) throws IOException {
        List<String> names = names(loaded.chain.getFirst());
        if (names.stream().noneMatch(node::equalsIgnoreCase)) {
            throw new IOException(
                    "the certificate in %s is for %s; allowed for node '%s': one with this name as CN or as DNS name"
                            .formatted(certificate, names, node));
        }
    }

    /// Signs a statement with the key.
    Signed sign(byte[] statement) throws GeneralSecurityException {
        Loaded current = loaded;
        Signature signature = Signature.getInstance(PemFiles.signatureAlgorithm(current.key.getAlgorithm()));
        signature.initSign(current.key);
        signature.update(statement);
        return new Signed(current.chain, signature.sign());
    }

    /// A signature, and the certificate that it is checked by.
    static final class Signed {

        private final List<X509Certificate> chain;
        private final byte[] signature;

        /// @param signature is kept
        Signed(List<X509Certificate> chain, byte[] signature) {
            this.chain = List.copyOf(chain);
            this.signature = signature;
        }

        /// The signer's own certificate, and those behind it.
        List<X509Certificate> chain() {
            return chain;
        }

        /// Must not be changed.
        byte[] signature() {
            return signature;
        }
    }

    /// Checks a statement of the server of this name.
    ///
    /// @throws GeneralSecurityException when it is another server's; the message says why
    void verify(String name, byte[] statement, Signed signed) throws GeneralSecurityException {
        checkTrusted(signed.chain, loaded.trust);
        X509Certificate own = signed.chain.getFirst();
        if (names(own).stream().noneMatch(name::equalsIgnoreCase)) {
            throw new CertificateException("its certificate is for " + names(own));
        }
        Signature signature = Signature.getInstance(
                PemFiles.signatureAlgorithm(own.getPublicKey().getAlgorithm()));
        signature.initVerify(own.getPublicKey());
        signature.update(statement);
        if (!signature.verify(signed.signature)) {
            throw new SignatureException("its signature is wrong");
        }
    }

    private static List<String> names(X509Certificate certificate) {
        try {
            Stream<String> common = new LdapName(
                            certificate.getSubjectX500Principal().getName())
                    .getRdns().stream()
                            .filter(part -> part.getType().equalsIgnoreCase("CN"))
                            .map(part -> String.valueOf(part.getValue()));
            Collection<List<?>> others = certificate.getSubjectAlternativeNames();
            Stream<String> dns = (others == null ? List.<List<?>>of() : others)
                    .stream()
                            .filter(other -> DNS_NAME.equals(other.getFirst()))
                            .map(other -> String.valueOf(other.get(1)));
            return Stream.concat(common, dns).distinct().toList();
        } catch (InvalidNameException | CertificateException malformed) {
            return List.of();
        }
    }

    private Loaded load() throws IOException {
        List<X509Certificate> chain = PemFiles.readCertificates(certificate);
        PrivateKey privateKey = PemFiles.readKey(key, new char[0]);
        List<X509Certificate> authorities = PemFiles.readCertificates(authority);
        try {
            PemFiles.requireMatch(privateKey, key.toString(), chain.getFirst(), certificate.toString());
            X509ExtendedTrustManager trust = trustManager(authorities);
            requireTrusted(chain, trust);
            return new Loaded(chain, privateKey, keyManager(chain, privateKey), trust);
        } catch (GeneralSecurityException unusable) {
            throw new IOException(
                    "%s, %s and %s cannot be used: %s".formatted(certificate, key, authority, unusable.getMessage()),
                    unusable);
        }
    }

    /// Other servers have the same authority, and would refuse every connection without a word about why.
    private void requireTrusted(List<X509Certificate> chain, X509ExtendedTrustManager trust) throws IOException {
        try {
            checkTrusted(chain, trust);
        } catch (CertificateException refused) {
            X509Certificate own = chain.getFirst();
            throw new IOException(
                    "the certificate in %s is valid from %s to %s, and other servers would refuse it: %s; allowed: one that is valid now and that an authority in %s has signed"
                            .formatted(
                                    certificate,
                                    own.getNotBefore().toInstant(),
                                    own.getNotAfter().toInstant(),
                                    refused.getMessage(),
                                    authority),
                    refused);
        }
    }

    private static void checkTrusted(List<X509Certificate> chain, X509ExtendedTrustManager trust)
            throws CertificateException {
        trust.checkClientTrusted(
                chain.toArray(X509Certificate[]::new),
                chain.getFirst().getPublicKey().getAlgorithm());
    }

    private static X509KeyManager keyManager(List<X509Certificate> chain, PrivateKey key)
            throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        store.setKeyEntry("node", key, new char[0], chain.toArray(X509Certificate[]::new));
        KeyManagerFactory factory = KeyManagerFactory.getInstance("SunX509");
        factory.init(store, new char[0]);
        return (X509KeyManager) factory.getKeyManagers()[0];
    }

    private static X509ExtendedTrustManager trustManager(List<X509Certificate> authorities)
            throws GeneralSecurityException, IOException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        for (int i = 0; i < authorities.size(); i++) {
            store.setCertificateEntry("authority-" + i, authorities.get(i));
        }
        TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
        factory.init(store);
        return (X509ExtendedTrustManager) factory.getTrustManagers()[0];
    }

    /// Finds the current key for each new connection.
    private final class CurrentKeys implements X509KeyManager {

        @Override
        public String[] getClientAliases(String keyType, Principal[] issuers) {
            return loaded.keys.getClientAliases(keyType, issuers);
        }

        @Override
        public String chooseClientAlias(String[] keyType, Principal[] issuers, Socket socket) {
            return loaded.keys.chooseClientAlias(keyType, issuers, socket);
        }

        @Override
        public String[] getServerAliases(String keyType, Principal[] issuers) {
            return loaded.keys.getServerAliases(keyType, issuers);
        }

        @Override
        public String chooseServerAlias(String keyType, Principal[] issuers, Socket socket) {
            return loaded.keys.chooseServerAlias(keyType, issuers, socket);
        }

        @Override
        public X509Certificate[] getCertificateChain(String alias) {
            return loaded.keys.getCertificateChain(alias);
        }

        @Override
        public PrivateKey getPrivateKey(String alias) {
            return loaded.keys.getPrivateKey(alias);
        }
    }

    /// Checks each new connection by the current authority.
    private final class CurrentTrust extends X509ExtendedTrustManager {

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket)
                throws CertificateException {
            loaded.trust.checkClientTrusted(chain, type, socket);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket)
                throws CertificateException {
            loaded.trust.checkServerTrusted(chain, type, socket);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
                throws CertificateException {
            loaded.trust.checkClientTrusted(chain, type, engine);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
                throws CertificateException {
            loaded.trust.checkServerTrusted(chain, type, engine);
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
            loaded.trust.checkClientTrusted(chain, type);
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
            loaded.trust.checkServerTrusted(chain, type);
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return loaded.trust.getAcceptedIssuers();
        }
    }
}

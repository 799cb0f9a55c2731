package io.kvcache.server.access;

import io.kvcache.server.config.TlsConfig;
import io.kvcache.tiers.directory.FileErrorMessage;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.Signature;
import java.security.SignatureException;
import java.security.UnrecoverableKeyException;
import java.security.cert.CertificateException;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import javax.net.ssl.KeyManagerFactory;
import org.jspecify.annotations.Nullable;

/// A listener's certificate and key, as its files were at the last load.
///
/// **Threads.** Any.
public final class ReloadableTls {

    /// How a key signs, by its algorithm. A key of another algorithm is not checked against its certificate.
    private static final Map<String, String> SIGNATURES =
            Map.of("RSA", "SHA256withRSA", "EC", "SHA256withECDSA", "EdDSA", "EdDSA");

    private final TlsConfig config;
    private volatile Loaded loaded;

    private ReloadableTls(TlsConfig config) throws IOException {
        this.config = config;
        loaded = load(config);
    }

    /// @param expiresAt of the first certificate of the chain that ends
    private record Loaded(SslContext context, Instant expiresAt) {}

    /// Reads the files.
    ///
    /// @throws IOException when they cannot be used; the message names the setting, and nothing secret
    public static ReloadableTls open(TlsConfig config) throws IOException {
        return new ReloadableTls(config);
    }

    /// Reads the files again. Connections that there are stay as they are.
    ///
    /// @throws IOException when they cannot be used; what was read before stays
    public void reload() throws IOException {
        loaded = load(config);
    }

    /// For new connections.
    public SslContext context() {
        return loaded.context;
    }

    /// When it ends; of a chain, when the first of it does.
    public Instant expiresAt() {
        return loaded.expiresAt;
    }

    /// The files that it is made of.
    public List<Path> files() {
        return Stream.of(config.certificate(), config.key(), config.keystore(), config.passwordFile())
                .filter(Objects::nonNull)
                .map(Path::of)
                .toList();
    }

    private static Loaded load(TlsConfig config) throws IOException {
        try {
            String store = config.keystore();
            SslContextBuilder builder = store == null ? fromPem(config) : fromKeyStore(config, store);
            return new Loaded(
                    builder.protocols("TLSv1.3", "TLSv1.2").build(),
                    store == null ? pemExpiry(config) : keyStoreExpiry(config, store));
        } catch (IOException | GeneralSecurityException | IllegalArgumentException unusable) {
            throw new IOException(config.path() + " cannot be used: " + reason(unusable), unusable);
        }
    }

    /// A file whose contents cannot be used, with the remedy.
    private static final class TlsFileException extends IOException {

        private static final long serialVersionUID = 1;

        TlsFileException(String message, @Nullable Exception cause) {
            super(message, cause);
        }
    }

    /// The innermost reason says most: which file is missing, or that a password is wrong.
    private static String reason(Throwable failure) {
        Throwable cause = failure;
        while (cause.getCause() != null && !(cause instanceof TlsFileException)) {
            cause = cause.getCause();
        }
        return FileErrorMessage.of(cause, "");
    }

    private static SslContextBuilder fromPem(TlsConfig config) throws IOException, GeneralSecurityException {
        File certificate = new File(Objects.requireNonNull(config.certificate()));
        File key = new File(Objects.requireNonNull(config.key()));
        requireReadable(certificate);
        requireReadable(key);
        X509Certificate[] chain = PemFiles.readCertificates(certificate);
        PrivateKey privateKey = PemFiles.readKey(key, readPassword(config));
        requireMatch(key.toString(), privateKey, certificate.toString(), chain[0]);
        return SslContextBuilder.forServer(privateKey, chain);
    }

    /// Checks a key against the certificate by a signature. Otherwise each client would fail in its handshake.
    private static void requireMatch(
            String keyName, PrivateKey key, String certificateName, java.security.cert.Certificate certificate)
            throws IOException, GeneralSecurityException {
        String algorithm = SIGNATURES.get(key.getAlgorithm());
        String certified = SIGNATURES.get(certificate.getPublicKey().getAlgorithm());
        if (algorithm == null || certified == null) {
            return;
        }
        if (!algorithm.equals(certified) || !verifies(algorithm, key, certificate)) {
            throw new TlsFileException(
                    "the key in " + keyName + " does not belong to the certificate in " + certificateName
                            + "; give the key that the certificate was made for, the server's own certificate first",
                    null);
        }
    }

    private static boolean verifies(String algorithm, PrivateKey key, java.security.cert.Certificate certificate)
            throws GeneralSecurityException {
        byte[] text = {1, 2, 3};
        Signature signature = Signature.getInstance(algorithm);
        signature.initSign(key);
        signature.update(text);
        byte[] signed = signature.sign();
        signature.initVerify(certificate.getPublicKey());
        signature.update(text);
        try {
            return signature.verify(signed);
        } catch (SignatureException other) {
            return false; // a key of another length
        }
    }

    /// Netty's reader of PEM files, which a context keeps for its subclasses.
    private abstract static class PemFiles extends SslContext {

        static X509Certificate[] readCertificates(File file) throws IOException {
            try {
                return toX509Certificates(file);
            } catch (CertificateException malformed) {
                throw new TlsFileException(
                        file + " has no certificate in PEM (-----BEGIN CERTIFICATE-----); name the file with the"
                                + " server's certificate first and its chain behind it",
                        malformed);
            }
        }

        static PrivateKey readKey(File file, char[] password) throws IOException {
            String wrongPassword = password.length == 0 ? "" : ", or its password in password_file is wrong";
            try {
                PrivateKey key = toPrivateKey(file, password.length == 0 ? null : new String(password));
                if (key != null) {
                    return key;
                }
                throw new GeneralSecurityException("no key");
            } catch (GeneralSecurityException | IllegalArgumentException malformed) {
                throw new TlsFileException(
                        file + " has no private key in PKCS#8 PEM (-----BEGIN PRIVATE KEY-----)" + wrongPassword
                                + "; convert it: openssl pkcs8 -topk8 -nocrypt -in " + file + " -out key.pem",
                        malformed);
            }
        }
    }

    private static SslContextBuilder fromKeyStore(TlsConfig config, String file)
            throws IOException, GeneralSecurityException {
        char[] password = readPassword(config);
        KeyStore store = loadKeyStore(file, password);
        if (store.size() == 0) {
            throw new IOException(file + " is empty");
        }
        for (String alias : Collections.list(store.aliases())) {
            if (store.isKeyEntry(alias) && store.getKey(alias, password) instanceof PrivateKey key) {
                requireMatch(file, key, file, store.getCertificate(alias));
            }
        }
        KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, password);
        return SslContextBuilder.forServer(keys);
    }

    private static KeyStore loadKeyStore(String file, char[] password) throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(Path.of(file))) {
            store.load(in, password);
        } catch (FileSystemException unreadable) {
            throw unreadable;
        } catch (IOException malformed) {
            throw new TlsFileException(
                    malformed.getCause() instanceof UnrecoverableKeyException
                            ? "the password of the keystore " + file + " is wrong; give it in password_file"
                            : file + " is not a PKCS12 keystore; make one with openssl pkcs12 -export, or give"
                                    + " certificate and key in PEM",
                    malformed);
        }
        return store;
    }

    private static Instant pemExpiry(TlsConfig config) throws IOException, GeneralSecurityException {
        try (InputStream in = Files.newInputStream(Path.of(Objects.requireNonNull(config.certificate())))) {
            return expiresAt(CertificateFactory.getInstance("X.509").generateCertificates(in).stream());
        }
    }

    private static Instant keyStoreExpiry(TlsConfig config, String file) throws IOException, GeneralSecurityException {
        KeyStore store = loadKeyStore(file, readPassword(config));
        List<java.security.cert.Certificate> all = new ArrayList<>();
        for (String alias : Collections.list(store.aliases())) {
            if (store.isKeyEntry(alias)) {
                all.addAll(List.of(store.getCertificateChain(alias)));
            }
        }
        return expiresAt(all.stream());
    }

    private static Instant expiresAt(Stream<? extends java.security.cert.Certificate> chain) {
        return chain.filter(X509Certificate.class::isInstance)
                .map(each -> ((X509Certificate) each).getNotAfter().toInstant())
                .min(Comparator.naturalOrder())
                .orElse(Instant.EPOCH);
    }

    private static void requireReadable(File file) throws IOException {
        if (!file.canRead()) {
            throw new IOException(
                    file + " cannot be read: " + (file.exists() ? "permission denied" : "it does not exist"));
        }
    }

    private static char[] readPassword(TlsConfig config) throws IOException {
        String file = config.passwordFile();
        return file == null
                ? new char[0]
                : Files.readString(Path.of(file)).lines().findFirst().orElse("").toCharArray();
    }
}

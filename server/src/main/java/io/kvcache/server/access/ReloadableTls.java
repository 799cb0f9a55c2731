package io.kvcache.server.access;

import io.kvcache.server.config.TlsConfig;
import io.kvcache.tiers.directory.FileErrorMessage;
import io.kvcache.transport.net.PemFiles;
import io.kvcache.transport.net.PemFiles.TlsFileException;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.UnrecoverableKeyException;
import java.security.cert.X509Certificate;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
import javax.net.ssl.KeyManagerFactory;

/// A listener's certificate and key, as its files were at the last load.
///
/// **Threads.** Any.
public final class ReloadableTls {

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
                    store == null
                            ? expiresAt(
                                    PemFiles.readCertificates(Path.of(Objects.requireNonNull(config.certificate())))
                                            .stream())
                            : keyStoreExpiry(config, store));
        } catch (IOException | GeneralSecurityException | IllegalArgumentException unusable) {
            throw new IOException(config.path() + " cannot be used: " + reason(unusable), unusable);
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
        Path certificate = Path.of(Objects.requireNonNull(config.certificate()));
        Path key = Path.of(Objects.requireNonNull(config.key()));
        List<X509Certificate> chain = PemFiles.readCertificates(certificate);
        PrivateKey privateKey = PemFiles.readKey(key, readPassword(config));
        PemFiles.requireMatch(privateKey, key.toString(), chain.getFirst(), certificate.toString());
        return SslContextBuilder.forServer(privateKey, chain);
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
                PemFiles.requireMatch(key, file, store.getCertificate(alias), file);
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

    private static char[] readPassword(TlsConfig config) throws IOException {
        String file = config.passwordFile();
        return file == null
                ? new char[0]
                : Files.readString(Path.of(file)).lines().findFirst().orElse("").toCharArray();
    }
}

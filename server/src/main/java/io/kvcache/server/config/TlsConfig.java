package io.kvcache.server.config;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/// A listener's certificate and key: two PEM files, or one PKCS12 file.
///
/// @param path of its settings: `listeners.0.tls`
/// @param certificate PEM with the chain, the server's own first; or null
/// @param key PEM with the private key in PKCS#8; or null
/// @param keystore PKCS12 with both; or null
/// @param passwordFile its first line is the password of the key or the keystore; null for none
public record TlsConfig(
        String path,
        @Nullable String certificate,
        @Nullable String key,
        @Nullable String keystore,
        @Nullable String passwordFile) {

    public TlsConfig {
        boolean pair = certificate != null && key != null && keystore == null;
        boolean store = certificate == null && key == null && keystore != null;
        if (!pair && !store) {
            throw new IllegalArgumentException(
                    path + " takes certificate and key, or keystore, and password_file beside them where needed");
        }
    }

    /// Returns the settings at a path, or null when none are set.
    static @Nullable TlsConfig read(Settings from, String path) {
        String certificate = from.textOrNull(path + ".certificate");
        String key = from.textOrNull(path + ".key");
        String keystore = from.textOrNull(path + ".keystore");
        String passwordFile = from.textOrNull(path + ".password_file");
        Optional<TlsConfig> none = Optional.empty();
        return from.isAnySet(path)
                ? from.getValid(none, () -> Optional.of(new TlsConfig(path, certificate, key, keystore, passwordFile)))
                        .orElse(null)
                : null;
    }
}

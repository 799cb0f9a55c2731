package io.kvcache.transport.endpoint;

import io.kvcache.transport.wire.Secret;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Who may talk to an endpoint, and in whose name.
public sealed interface Access {

    /// Anybody, in anybody's name: for loopback and trusted networks.
    record Open() implements Access {}

    /// Whoever knows one secret, in anybody's name.
    record Shared(Secret secret) implements Access {}

    /// Each tenant by its own secret, and in its own name only.
    record Tenants(Map<String, Secret> secrets) implements Access {
        public Tenants {
            secrets = Map.copyOf(secrets);
        }
    }

    static Access open() {
        return new Open();
    }

    /// Whoever knows this secret.
    ///
    /// @param secret at least 16 bytes of UTF-8
    static Access secret(String secret) {
        return new Shared(checked("the secret", secret));
    }

    /// Tenants, each by its own secret.
    ///
    /// @param secrets by tenant, each at least 16 bytes of UTF-8
    static Access tenants(Map<String, String> secrets) {
        return new Tenants(secrets.entrySet().stream()
                .collect(Collectors.toMap(
                        Map.Entry::getKey, each -> checked("the secret of " + each.getKey(), each.getValue()))));
    }

    private static Secret checked(String what, String secret) {
        byte[] bytes = secret.getBytes(StandardCharsets.UTF_8);
        if (bytes.length < Secret.SHORTEST_SHARED) {
            throw new IllegalArgumentException(
                    what + " has " + bytes.length + " bytes; allowed: " + Secret.SHORTEST_SHARED + " and up");
        }
        return new Secret(bytes);
    }

    /// Whether a proof is asked for.
    default boolean guarded() {
        return !(this instanceof Open);
    }

    /// The secret of whoever says to be this tenant; of a stranger a random one, so that it takes as long
    /// to refuse.
    default Secret secretOf(String tenant) {
        return switch (this) {
            case Open open -> Secret.none(Secret.SHORTEST_SHARED);
            case Shared shared -> shared.secret;
            case Tenants each -> each.secrets.getOrDefault(tenant, Secret.random(Secret.SHORTEST_SHARED));
        };
    }

    /// The only tenant whose namespaces may be used by whoever is this one; null for any.
    default @Nullable String limit(String tenant) {
        return this instanceof Tenants ? tenant : null;
    }
}

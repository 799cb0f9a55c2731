package io.kvcache.transport.endpoint;

import io.kvcache.transport.wire.Secret;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// Who may talk to an endpoint, and in whose name.
public sealed interface Access {

    /// Anybody, in anybody's name: for loopback and trusted networks.
    record Open() implements Access {}

    /// Whoever knows one of some secrets, in anybody's name.
    record Shared(List<Secret> secrets) implements Access {
        public Shared {
            secrets = List.copyOf(secrets);
        }
    }

    /// Each tenant by one of its own secrets, and in its own name only.
    record Tenants(Map<String, List<Secret>> secrets) implements Access {
        public Tenants {
            secrets = Map.copyOf(secrets);
        }
    }

    /// As another one says, but in the name of one tenant only.
    record InName(String tenant, Access by) implements Access {}

    /// As is said at the moment of each handshake, so that secrets can change. Whether there are any
    /// does not.
    record Current(Supplier<Access> said) implements Access {}

    static Access open() {
        return new Open();
    }

    /// Whoever knows this secret.
    ///
    /// @param secret at least 16 bytes of UTF-8
    static Access secret(String secret) {
        return secrets(List.of(secret));
    }

    /// Whoever knows one of these secrets: two while one takes the place of the other.
    ///
    /// @param secrets each at least 16 bytes of UTF-8
    static Access secrets(List<String> secrets) {
        return new Shared(
                secrets.stream().map(each -> checked("the secret", each)).toList());
    }

    /// Tenants, each by its own secret.
    ///
    /// @param secrets by tenant, each at least 16 bytes of UTF-8
    static Access tenants(Map<String, String> secrets) {
        return tenantSecrets(secrets.entrySet().stream()
                .collect(Collectors.toMap(Map.Entry::getKey, all -> List.of(all.getValue()))));
    }

    /// Tenants, each by one of its own secrets.
    ///
    /// @param secrets by tenant, each at least 16 bytes of UTF-8
    static Access tenantSecrets(Map<String, List<String>> secrets) {
        return new Tenants(secrets.entrySet().stream()
                .collect(Collectors.toMap(
                        Map.Entry::getKey,
                        all -> all.getValue().stream()
                                .map(each -> checked("the secret of " + all.getKey(), each))
                                .toList())));
    }

    private static Secret checked(String what, String secret) {
        byte[] bytes = secret.getBytes(StandardCharsets.UTF_8);
        if (bytes.length < Secret.SHORTEST_SHARED) {
            throw new IllegalArgumentException(
                    what + " has " + bytes.length + " bytes; allowed: " + Secret.SHORTEST_SHARED + " and up");
        }
        return new Secret(bytes);
    }

    /// What is said at this moment.
    default Access now() {
        return this instanceof Current current ? current.said.get().now() : this;
    }

    /// Whether a proof is asked for.
    default boolean guarded() {
        return switch (this) {
            case Open open -> false;
            case Shared shared -> true;
            case Tenants each -> true;
            case InName bound -> bound.by.guarded();
            case Current current -> now().guarded();
        };
    }

    /// The secrets of whoever says to be this tenant, each of which is good; of a stranger a random one,
    /// so that it takes as long to refuse.
    default List<Secret> secretsOf(String tenant) {
        return switch (this) {
            case Open open -> List.of(Secret.none(Secret.SHORTEST_SHARED));
            case Shared shared -> shared.secrets;
            case Tenants each -> each.secrets.getOrDefault(tenant, List.of(Secret.random(Secret.SHORTEST_SHARED)));
            case InName bound -> bound.by.secretsOf(tenant);
            case Current current -> now().secretsOf(tenant);
        };
    }

    /// Whether each client is one of several tenants, by a secret of its own.
    default boolean tellsTenantsApart() {
        return switch (this) {
            case Open open -> false;
            case Shared shared -> false;
            case Tenants each -> each.secrets.size() > 1;
            case InName bound -> false;
            case Current current -> now().tellsTenantsApart();
        };
    }

    /// The only tenant whose namespaces may be used by whoever is this one; null for any.
    default @Nullable String limit(String tenant) {
        return switch (this) {
            case Open open -> null;
            case Shared shared -> null;
            case Tenants each -> tenant;
            case InName bound -> bound.tenant;
            case Current current -> now().limit(tenant);
        };
    }
}

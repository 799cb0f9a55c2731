package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.Secret;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// How an endpoint authenticates clients, and which tenants they may speak for.
@SuppressWarnings("exports") // Secrets come from its own methods.
public sealed interface EndpointAuthentication {

    /// Accepts any client as any tenant: for loopback and trusted networks.
    record Unauthenticated() implements EndpointAuthentication {}

    /// Accepts a client that knows one of these secrets, as any tenant.
    record BySecret(List<Secret> secrets) implements EndpointAuthentication {
        public BySecret {
            secrets = List.copyOf(secrets);
        }
    }

    /// Accepts each tenant by one of its own secrets, and only as itself.
    record ByTenant(Map<String, List<Secret>> secrets) implements EndpointAuthentication {
        public ByTenant {
            secrets = Map.copyOf(secrets);
        }
    }

    /// Authenticates by another rule, but accepts clients as one tenant only.
    record SingleTenant(String tenant, EndpointAuthentication auth) implements EndpointAuthentication {}

    /// Authenticates by the rule that the source returns at each handshake, so that secrets can change. The source
    /// must not switch between rules with secrets and rules without.
    record Reloadable(Supplier<EndpointAuthentication> source) implements EndpointAuthentication {}

    static EndpointAuthentication unauthenticated() {
        return new Unauthenticated();
    }

    /// Returns a rule that accepts clients with this secret.
    ///
    /// @param secret at least 16 bytes of UTF-8
    static EndpointAuthentication secret(String secret) {
        return secrets(List.of(secret));
    }

    /// Returns a rule that accepts clients with one of these secrets: two during a rotation.
    ///
    /// @param secrets each at least 16 bytes of UTF-8
    static EndpointAuthentication secrets(List<String> secrets) {
        return new BySecret(
                secrets.stream().map(each -> validSecret("the secret", each)).toList());
    }

    /// Returns a rule that accepts each tenant by its own secret.
    ///
    /// @param secrets by tenant, each at least 16 bytes of UTF-8
    static EndpointAuthentication tenants(Map<String, String> secrets) {
        return tenantSecrets(secrets.entrySet().stream()
                .collect(Collectors.toMap(Map.Entry::getKey, all -> List.of(all.getValue()))));
    }

    /// Returns a rule that accepts each tenant by one of its own secrets.
    ///
    /// @param secrets by tenant, each at least 16 bytes of UTF-8
    static EndpointAuthentication tenantSecrets(Map<String, List<String>> secrets) {
        return new ByTenant(secrets.entrySet().stream()
                .collect(Collectors.toMap(
                        Map.Entry::getKey,
                        all -> all.getValue().stream()
                                .map(each -> validSecret("the secret of " + all.getKey(), each))
                                .toList())));
    }

    private static Secret validSecret(String what, String secret) {
        byte[] bytes = secret.getBytes(StandardCharsets.UTF_8);
        if (bytes.length < Secret.MIN_SHARED_BYTES) {
            throw new IllegalArgumentException(
                    what + " has " + bytes.length + " bytes; allowed: " + Secret.MIN_SHARED_BYTES + " and up");
        }
        return new Secret(bytes);
    }

    /// Returns the rule that applies now.
    default EndpointAuthentication current() {
        return this instanceof Reloadable reloadable ? reloadable.source.get().current() : this;
    }

    /// Returns whether clients must prove that they know a secret.
    default boolean requiresProof() {
        return switch (this) {
            case Unauthenticated unauthenticated -> false;
            case BySecret bySecret -> true;
            case ByTenant each -> true;
            case SingleTenant bound -> bound.auth.requiresProof();
            case Reloadable reloadable -> current().requiresProof();
        };
    }

    /// Returns the valid secrets of a tenant. For an unknown tenant, returns a random secret, so that its rejection
    /// takes as long.
    default List<Secret> secretsOf(String tenant) {
        return switch (this) {
            case Unauthenticated unauthenticated -> List.of(Secret.zeros(Secret.MIN_SHARED_BYTES));
            case BySecret bySecret -> bySecret.secrets;
            case ByTenant each ->
                each.secrets.getOrDefault(Namespace.ownerOf(tenant), List.of(Secret.random(Secret.MIN_SHARED_BYTES)));
            case SingleTenant bound -> bound.auth.secretsOf(tenant);
            case Reloadable reloadable -> current().secretsOf(tenant);
        };
    }

    /// Returns whether several tenants have secrets of their own.
    default boolean separatesTenants() {
        return switch (this) {
            case Unauthenticated unauthenticated -> false;
            case BySecret bySecret -> false;
            case ByTenant each -> each.secrets.size() > 1;
            case SingleTenant bound -> false;
            case Reloadable reloadable -> current().separatesTenants();
        };
    }

    /// Returns the only tenant whose namespaces a client of this tenant may use, or null for any.
    default @Nullable String tenantRestriction(String tenant) {
        return switch (this) {
            case Unauthenticated unauthenticated -> null;
            case BySecret bySecret -> null;
            case ByTenant each -> Namespace.ownerOf(tenant);
            case SingleTenant bound -> bound.tenant;
            case Reloadable reloadable -> current().tenantRestriction(tenant);
        };
    }
}

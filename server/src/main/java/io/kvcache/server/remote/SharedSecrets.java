package io.kvcache.server.remote;

import io.kvcache.server.access.PasswordHash;
import io.kvcache.server.access.SecretFile;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TransportConfig;
import io.kvcache.transport.endpoint.EndpointAuthPolicy;
import java.io.IOException;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;

/// The secrets of clients, as of the moment when their files were read last.
///
/// **Threads.** Any; one at a time reads the files.
final class SharedSecrets {

    private final TransportConfig config;
    private final List<TenantConfig> tenants;
    private volatile EndpointAuthPolicy current;

    private SharedSecrets(TransportConfig config, List<TenantConfig> tenants) throws IOException {
        this.config = config;
        this.tenants = List.copyOf(tenants);
        current = load(config, tenants);
    }

    /// @throws IOException when a file cannot be used; the message names the setting and the file, never what is
    ///     in it
    static SharedSecrets open(TransportConfig config, List<TenantConfig> tenants) throws IOException {
        return new SharedSecrets(config, tenants);
    }

    /// Returns the policy that accepts clients, now and after a reload.
    EndpointAuthPolicy endpointAuth() {
        return new EndpointAuthPolicy.Reloadable(() -> current);
    }

    /// Reads all files again.
    ///
    /// @throws IOException when one cannot be used; the secrets from before stay
    void reload() throws IOException {
        current = load(config, tenants);
    }

    List<Path> files() {
        return Stream.concat(
                        Stream.ofNullable(config.secretFile()),
                        tenants.stream().map(TenantConfig::secretFile).filter(Objects::nonNull))
                .map(Path::of)
                .toList();
    }

    /// With tenants, a client is the one whose secret it shows, and the default one without a secret.
    private static EndpointAuthPolicy load(TransportConfig config, List<TenantConfig> tenants) throws IOException {
        Map<String, List<String>> each = new HashMap<>();
        for (TenantConfig tenant : tenants) {
            if (tenant.secretFile() != null) {
                each.put(tenant.name(), lines(tenant.path() + ".secret_file", tenant.secretFile()));
            }
        }
        if (!each.isEmpty()) {
            return EndpointAuthPolicy.tenantSecrets(each);
        }
        EndpointAuthPolicy all = config.secretFile() == null
                ? EndpointAuthPolicy.unauthenticated()
                : EndpointAuthPolicy.secrets(lines("transport.secret_file", config.secretFile()));
        return tenants.equals(List.of(TenantConfig.defaultTenant()))
                ? all
                : new EndpointAuthPolicy.SingleTenant(TenantConfig.DEFAULT, all);
    }

    private static List<String> lines(String setting, String file) throws IOException {
        List<String> lines = SecretFile.readPrivateLines(setting, file, "secret").stream()
                .map(String::strip)
                .toList();
        for (String line : lines) {
            if (PasswordHash.isHash(line)) {
                throw new IOException(setting + " " + file + " has a hash; a proof takes the secret itself");
            }
        }
        try {
            EndpointAuthPolicy.secrets(lines);
        } catch (IllegalArgumentException shorter) {
            throw new IOException(setting + " " + file + ": " + shorter.getMessage(), shorter);
        }
        return lines;
    }
}

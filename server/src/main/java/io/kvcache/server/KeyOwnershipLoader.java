package io.kvcache.server;

import io.kvcache.server.access.SecretFile;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.config.TenantConfig.KeyOwnershipConfig;
import io.kvcache.server.keyspace.KeyOwnershipRules;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/// How keys name tenants, as the configuration and its files of salts say at the moment.
///
/// **Threads.** Any; one at a time reloads.
final class KeyOwnershipLoader {

    private final List<TenantConfig> tenants;
    private final AtomicReference<KeyOwnershipRules> rules;

    private KeyOwnershipLoader(List<TenantConfig> tenants, KeyOwnershipRules keyOwnershipRules) {
        this.tenants = tenants;
        rules = new AtomicReference<>(keyOwnershipRules);
    }

    /// Reads the files of salts.
    ///
    /// @throws IOException when one cannot be used; the message says which and why, never a salt
    static KeyOwnershipLoader open(List<TenantConfig> tenants) throws IOException {
        return new KeyOwnershipLoader(List.copyOf(tenants), read(tenants));
    }

    /// Asks for the rules as of now.
    Supplier<KeyOwnershipRules> rules() {
        return rules::get;
    }

    /// Reads the files of salts again.
    ///
    /// @throws IOException when one cannot be used; the salts from before stay
    void reload() throws IOException {
        rules.set(read(tenants));
    }

    List<Path> files() {
        return tenants.stream()
                .map(tenant -> tenant.keyOwnership().saltFile())
                .filter(Objects::nonNull)
                .map(Path::of)
                .toList();
    }

    private static KeyOwnershipRules read(List<TenantConfig> tenants) throws IOException {
        Map<String, String> prefixes = new HashMap<>();
        Map<String, String> salts = new HashMap<>();
        for (TenantConfig tenant : tenants) {
            tenant.keyOwnership().prefixes().forEach(prefix -> prefixes.put(prefix, tenant.name()));
            for (String salt : salts(tenant)) {
                String other = salts.put(salt, tenant.name());
                if (other != null && !other.equals(tenant.name())) {
                    throw new IOException("tenants " + other + " and " + tenant.name()
                            + " have a salt in common; each takes salts of its own");
                }
            }
        }
        return KeyOwnershipRules.of(prefixes, salts);
    }

    private static List<String> salts(TenantConfig tenant) throws IOException {
        List<String> all = new ArrayList<>(tenant.keyOwnership().salts());
        String file = tenant.keyOwnership().saltFile();
        if (file != null) {
            String setting = tenant.path() + ".salt_file";
            for (String line : SecretFile.readLines(setting, file, "salt")) {
                if (!KeyOwnershipConfig.isSalt(line.strip())) {
                    throw new IOException(
                            setting + " " + file + " has a line that is not a salt; " + KeyOwnershipConfig.SALT_RULES);
                }
                all.add(line.strip());
            }
        }
        return all;
    }
}

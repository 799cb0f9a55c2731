package io.kvcache.server.config;

import io.kvcache.core.KvCache;
import io.kvcache.core.identity.Namespace;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A tenant: clients that share values, apart from those of other tenants.
///
/// @param path of its settings: `tenants.0`
/// @param name by which listeners speak of it
/// @param user as clients send it, unique
/// @param passwordHash as `kvcache config hash-password` prints it, or null
/// @param passwordFile a file with passwords or their hashes, one a line, each of which is good; or null
/// @param quotaBytes room that its values may take, each counted once, in memory or on disk; 0 for as much as
///     there is
/// @param weight its share of host memory, and of each disk, against those of others while they want it too
/// @param secretFile a file with secrets for the endpoint of other JVMs, one a line, each of which is good; or
///     null
/// @param keyOwnership how keys name it
/// @param values whether a key may get another value, which matters in a cluster
/// @param admin whether its clients see the pages that tell of all tenants, where they authenticate
public record TenantConfig(
        String path,
        String name,
        String user,
        @Nullable String passwordHash,
        @Nullable String passwordFile,
        long quotaBytes,
        int weight,
        @Nullable String secretFile,
        KeyOwnershipConfig keyOwnership,
        ValueKind values,
        boolean admin) {

    /// The tenant of clients that do not authenticate.
    public static final String DEFAULT = Namespace.DEFAULT_TENANT;

    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9_.-]{1,64}");

    static final int MAX_WEIGHT = 1000;

    public TenantConfig {
        if (weight < 1 || weight > MAX_WEIGHT) {
            throw new IllegalArgumentException(path + ".weight is " + weight + "; it takes 1 to " + MAX_WEIGHT);
        }
        if (!NAME.matcher(name).matches()) {
            throw new IllegalArgumentException(
                    path + ".name is '" + name + "'; it takes 1 to 64 letters, digits, dots, dashes and underscores");
        }
        if (!NAME.matcher(user).matches()) {
            throw new IllegalArgumentException(
                    path + ".user is '" + user + "'; it takes 1 to 64 letters, digits, dots, dashes and underscores");
        }
        if (passwordHash != null && passwordFile != null) {
            throw new IllegalArgumentException(
                    path + ".password_file is set beside " + path + ".password_hash; it takes one of them");
        }
        keyOwnership.validate(path);
        if (name.equals(DEFAULT) && keyOwnership.hasRules()) {
            throw new IllegalArgumentException(path + ".prefixes or salts are set at the tenant " + DEFAULT
                    + ", which has all keys that name no tenant; it takes them at other tenants");
        }
        boolean proves = passwordHash != null || passwordFile != null || secretFile != null;
        if (!keyOwnership.prefixes().isEmpty() && proves) {
            throw new IllegalArgumentException(path + ".prefixes is set beside a password or a secret; any client that"
                    + " names a prefix is this tenant, so these would protect nothing; it takes one of them, or salts");
        }
    }

    /// Whether a key may get another value.
    public enum ValueKind {
        /// It may, so a server of a cluster does not serve what another one may have replaced.
        MUTABLE,
        /// A key has one value for ever, as a digest of content has.
        CONTENT
    }

    /// A tenant with a weight of 1 that no key names, without secrets and administrators.
    public TenantConfig(
            String path,
            String name,
            String user,
            @Nullable String passwordHash,
            @Nullable String passwordFile,
            long quotaBytes) {
        this(
                path,
                name,
                user,
                passwordHash,
                passwordFile,
                quotaBytes,
                1,
                null,
                KeyOwnershipConfig.NONE,
                ValueKind.MUTABLE,
                false);
    }

    /// The tenant that always exists, without a password.
    public static TenantConfig defaultTenant() {
        return new TenantConfig("tenants", DEFAULT, DEFAULT, null, null, 0);
    }

    /// The tenant that always exists, when another tenant's user has its name.
    static TenantConfig defaultTenantWithoutUser() {
        return new TenantConfig("tenants", DEFAULT, "nobody.default", null, null, 0);
    }

    /// Returns whether clients can authenticate as this tenant by a password.
    public boolean hasPassword() {
        return passwordHash != null || passwordFile != null;
    }

    /// All names, as messages list them.
    static String names(List<TenantConfig> tenants) {
        return tenants.stream().map(TenantConfig::name).collect(Collectors.joining(", "));
    }

    /// The list `tenants`, with the default one.
    static List<TenantConfig> readAll(Settings from) {
        List<TenantConfig> tenants = new ArrayList<>();
        for (int i = 0; i < from.itemCount("tenants"); i++) {
            tenants.add(read(from, "tenants." + i));
        }
        if (tenants.stream().noneMatch(each -> each.name.equals(DEFAULT))) {
            boolean free = tenants.stream().noneMatch(each -> each.user.equals(DEFAULT));
            tenants.add(free ? defaultTenant() : defaultTenantWithoutUser());
        }
        return tenants;
    }

    private static TenantConfig read(Settings from, String path) {
        String name = from.text(path + ".name", path);
        String valid = NAME.matcher(name).matches() ? name : path;
        String user = from.text(path + ".user", name);
        String hash = from.textOrNull(path + ".password_hash");
        String file = from.textOrNull(path + ".password_file");
        return from.getValid(
                new TenantConfig(path, valid, valid, file == null ? hash : null, file, 0),
                () -> new TenantConfig(
                        path,
                        name,
                        user,
                        hash,
                        file,
                        from.bytes(path + ".quota", 0),
                        from.integer(path + ".weight", 1, 1, MAX_WEIGHT),
                        from.textOrNull(path + ".secret_file"),
                        new KeyOwnershipConfig(
                                from.list(path + ".prefixes", List.of(), Function.identity()),
                                from.list(path + ".salts", List.of(), String::strip),
                                from.textOrNull(path + ".salt_file")),
                        from.constant(path + ".values", ValueKind.MUTABLE),
                        from.flag(path + ".admin", false)));
    }

    /// How keys say that they are a tenant's, where clients come in as the tenant `default`.
    ///
    /// @param prefixes what keys begin with, and names of namespaces; not secret
    /// @param salts what keys end with, behind an `@`; a client that knows one is the tenant
    /// @param saltFile a file with salts, one a line, each of which is good; or null
    public record KeyOwnershipConfig(
            List<String> prefixes,
            List<String> salts,
            @Nullable String saltFile) {

        /// A tenant that no key names.
        public static final KeyOwnershipConfig NONE = new KeyOwnershipConfig(List.of(), List.of(), null);

        /// No `@` and no slashes, as LMCache has it, and nothing that a pattern of keys takes for something else.
        private static final Pattern SALT = Pattern.compile("[\\x21-\\x7e&&[^@/\\\\*?\\[\\]]]{8,128}");

        private static final List<String> FORBIDDEN_SUFFIXES = List.of(":", "metadata", "kv_bytes");

        public KeyOwnershipConfig {
            prefixes = List.copyOf(prefixes);
            salts = List.copyOf(salts);
        }

        /// Returns whether a key can name the tenant.
        public boolean hasRules() {
            return !prefixes.isEmpty() || !salts.isEmpty() || saltFile != null;
        }

        void validate(String path) {
            for (String prefix : prefixes) {
                int bytes = prefix.getBytes(StandardCharsets.UTF_8).length;
                if (bytes < 1 || bytes > KvCache.MAX_OBJECT_KEY_BYTES || prefix.matches(".*[*?\\[\\]\\\\].*")) {
                    throw new IllegalArgumentException(path + ".prefixes has '" + prefix + "'; it takes 1 to "
                            + KvCache.MAX_OBJECT_KEY_BYTES + " bytes without *, ?, brackets and backslashes");
                }
            }
            for (String salt : salts) {
                if (!isSalt(salt)) {
                    throw new IllegalArgumentException(path + ".salts has an invalid one; " + SALT_RULES);
                }
            }
        }

        /// The rule for a salt, for messages. They never show a salt.
        public static final String SALT_RULES = "it takes 8 to 128 letters, digits and signs other than @ / \\ * ? [ ],"
                + " not with : or metadata or kv_bytes at the end";

        /// Returns whether a text may be a salt.
        public static boolean isSalt(String text) {
            return SALT.matcher(text).matches() && FORBIDDEN_SUFFIXES.stream().noneMatch(text::endsWith);
        }

        /// The salts are left out.
        @Override
        public String toString() {
            return "prefixes " + prefixes + ", " + salts.size() + " salts, salt file " + saltFile;
        }
    }
}

package io.kvcache.server.config;

import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// Somebody who has values of his own.
///
/// @param path of its settings: `tenants.0`
/// @param name by which listeners speak of it
/// @param user as clients say it; more than one tenant cannot have the same
/// @param passwordHash as `kvcache config hash-password` prints it, or null
/// @param passwordFile a file with passwords or their hashes, one a line, each of which is good; or null
/// @param quotaBytes room that its values may take, each counted once, in memory or on disk; 0 for as much as there is
/// @param weight its share of host memory, and of each disk, against those of others while they want it too
/// @param secretFile a file with secrets for the endpoint of other JVMs, one a line, each of which is good; or null
/// @param keyOwnership how keys name it
public record TenantConfig(
        String path,
        String name,
        String user,
        @Nullable String passwordHash,
        @Nullable String passwordFile,
        long quotaBytes,
        int weight,
        @Nullable String secretFile,
        KeyOwnershipConfig keyOwnership) {

    /// Whose values those are that nobody in particular stored.
    public static final String DEFAULT = "default";

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
                    + ", which has all keys that name nobody; it takes them at other tenants");
        }
        boolean proves = passwordHash != null || passwordFile != null || secretFile != null;
        if (!keyOwnership.prefixes().isEmpty() && proves) {
            throw new IllegalArgumentException(path + ".prefixes is set beside a password or a secret; whoever"
                    + " names a prefix is this tenant, so these would keep nobody out; it takes one of them, or salts");
        }
    }

    /// One that no key names.
    public TenantConfig(
            String path,
            String name,
            String user,
            @Nullable String passwordHash,
            @Nullable String passwordFile,
            long quotaBytes,
            int weight,
            @Nullable String secretFile) {
        this(path, name, user, passwordHash, passwordFile, quotaBytes, weight, secretFile, KeyOwnershipConfig.NONE);
    }

    /// One with a weight of 1 and no secrets.
    public TenantConfig(
            String path,
            String name,
            String user,
            @Nullable String passwordHash,
            @Nullable String passwordFile,
            long quotaBytes) {
        this(path, name, user, passwordHash, passwordFile, quotaBytes, 1, null);
    }

    /// The one that there always is, without a password.
    public static TenantConfig defaultTenant() {
        return new TenantConfig("tenants", DEFAULT, DEFAULT, null, null, 0);
    }

    /// The one that there always is, when another tenant's user has its name.
    static TenantConfig defaultTenantWithoutUser() {
        return new TenantConfig("tenants", DEFAULT, "nobody.default", null, null, 0);
    }

    /// Whether anybody can say that he is this tenant.
    public boolean hasPassword() {
        return passwordHash != null || passwordFile != null;
    }
}

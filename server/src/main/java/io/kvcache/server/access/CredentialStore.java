package io.kvcache.server.access;

import io.kvcache.server.config.TenantConfig;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/// All passwords as of one moment, and which tenant each user is.
///
/// **Two ways to check.** A hash is slow to check by design, a quarter of a second. Clients that connect often
/// cannot pay that each time. So a pair of user and password that was right once is remembered, as a SHA-256 over a
/// random number of this process and the pair. So are passwords that a file has in the clear. Only correct pairs
/// are remembered, so there are at most as many as passwords.
///
/// **Threads.** Any.
final class CredentialStore {

    private record User(String tenant, List<PasswordHash> hashes) {}

    private final Map<String, User> users = new HashMap<>();
    private final Map<ByteBuffer, String> verifiedPairs = new ConcurrentHashMap<>();
    private final byte[] pepper = new byte[32];
    /// Compared for users that there are not: as slow as the slowest hash of a user.
    private PasswordHash decoyHash;

    private CredentialStore(SecureRandom random) {
        random.nextBytes(pepper);
        decoyHash = PasswordHash.unmatchable(PasswordHash.DEFAULT_ITERATIONS, random);
    }

    /// Reads passwords and their files.
    ///
    /// @throws IOException when one cannot be used; the message names the setting and the file, never what is in it
    static CredentialStore load(List<TenantConfig> tenants, SecureRandom random) throws IOException {
        CredentialStore all = new CredentialStore(random);
        for (TenantConfig tenant : tenants) {
            List<PasswordHash> hashes = new ArrayList<>();
            if (tenant.passwordHash() != null) {
                hashes.add(hash(tenant.path() + ".password_hash", tenant.passwordHash()));
            }
            if (tenant.passwordFile() != null) {
                all.readPasswordFile(tenant, tenant.passwordFile(), hashes);
            }
            if (tenant.hasPassword()) {
                all.users.put(tenant.user(), new User(tenant.name(), List.copyOf(hashes)));
            }
        }
        all.users.values().stream()
                .flatMap(user -> user.hashes().stream())
                .mapToInt(PasswordHash::iterations)
                .max()
                .ifPresent(slowest -> all.decoyHash = PasswordHash.unmatchable(slowest, random));
        return all;
    }

    private void readPasswordFile(TenantConfig tenant, String file, List<PasswordHash> hashes) throws IOException {
        String setting = tenant.path() + ".password_file " + file;
        for (String line : SecretFile.readPrivateLines(tenant.path() + ".password_file", file, "password")) {
            if (PasswordHash.isHash(line)) {
                hashes.add(hash(setting, line.strip()));
            } else {
                verifiedPairs.put(digest(tenant.user(), line), tenant.name());
            }
        }
    }

    private static PasswordHash hash(String setting, String text) throws IOException {
        try {
            return PasswordHash.parse(text);
        } catch (IllegalArgumentException malformed) {
            throw new IOException(setting + " has no hash of a password; " + malformed.getMessage(), malformed);
        }
    }

    /// Returns whether a user of this name exists.
    boolean hasUser(String user) {
        return users.containsKey(user);
    }

    /// The tenant of a pair that is known to be right, or null.
    @Nullable
    String findVerified(String user, String password) {
        return verifiedPairs.get(digest(user, password));
    }

    /// The tenant of a pair that is right, or null. Slow, and as slow for users that there are not.
    @Nullable
    String verify(String user, String password) {
        User asked = users.get(user);
        if (asked == null || asked.hashes().isEmpty()) {
            decoyHash.matches(password);
            return null;
        }
        for (PasswordHash hash : asked.hashes()) {
            if (hash.matches(password)) {
                verifiedPairs.put(digest(user, password), asked.tenant());
                return asked.tenant();
            }
        }
        return null;
    }

    private ByteBuffer digest(String user, String password) {
        try {
            MessageDigest sha = MessageDigest.getInstance("SHA-256");
            sha.update(pepper);
            sha.update(PasswordHash.encodePassword(user));
            sha.update((byte) 0); // is in no user's name
            return ByteBuffer.wrap(sha.digest(PasswordHash.encodePassword(password)));
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException("this JDK has no SHA-256", missing);
        }
    }
}

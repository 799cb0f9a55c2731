package io.kvcache.server.access;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;

/// A password's hash: PBKDF2 with HMAC-SHA-256 over the password and a salt, written as
/// `pbkdf2-sha256$iterations$salt$hash`, with salt and hash in Base64.
public final class PasswordHash {

    /// The count that OWASP recommends for this function; it takes a quarter of a second.
    public static final int DEFAULT_ITERATIONS = 600_000;

    private static final String ALGORITHM = "pbkdf2-sha256";
    private static final int MIN_ITERATIONS = 1000;
    private static final int MAX_ITERATIONS = 10_000_000;
    private static final int SALT_BYTES = 16;
    private static final int HASH_BYTES = 32;
    private static final Pattern FORMAT =
            Pattern.compile(Pattern.quote(ALGORITHM) + "\\$(\\d{1,8})\\$([A-Za-z0-9+/=]+)\\$([A-Za-z0-9+/=]+)");

    private final int iterations;
    private final byte[] salt;
    private final byte[] hash;

    private PasswordHash(int iterations, byte[] salt, byte[] hash) {
        this.iterations = iterations;
        this.salt = salt;
        this.hash = hash;
    }

    /// Hashes a password with a salt of its own.
    public static PasswordHash of(String password, int iterations, SecureRandom random) {
        byte[] salt = new byte[SALT_BYTES];
        random.nextBytes(salt);
        return new PasswordHash(iterations, salt, derive(password, iterations, salt));
    }

    /// One that no password has.
    static PasswordHash unmatchable(int iterations, SecureRandom random) {
        byte[] salt = new byte[SALT_BYTES];
        byte[] hash = new byte[HASH_BYTES];
        random.nextBytes(salt);
        random.nextBytes(hash);
        return new PasswordHash(iterations, salt, hash);
    }

    int iterations() {
        return iterations;
    }

    /// Returns whether a text is meant as a hash and not as a password.
    public static boolean isHash(String text) {
        return text.startsWith(ALGORITHM + "$");
    }

    /// Reads what [#toString] wrote.
    ///
    /// @throws IllegalArgumentException when it is not that; the message does not repeat it
    public static PasswordHash parse(String text) {
        Matcher form = FORMAT.matcher(text);
        if (form.matches()) {
            int iterations = Integer.parseInt(form.group(1));
            byte[] salt = Base64.getDecoder().decode(form.group(2));
            byte[] hash = Base64.getDecoder().decode(form.group(3));
            if (iterations >= MIN_ITERATIONS
                    && iterations <= MAX_ITERATIONS
                    && salt.length >= SALT_BYTES
                    && hash.length == HASH_BYTES) {
                return new PasswordHash(iterations, salt, hash);
            }
        }
        throw new IllegalArgumentException("it takes what `kvcache config hash-password` prints");
    }

    /// Returns whether this is the password. Takes equally long in both cases.
    boolean matches(String password) {
        return MessageDigest.isEqual(hash, derive(password, iterations, salt));
    }

    private static byte[] derive(String password, int iterations, byte[] salt) {
        PBEKeySpec spec = new PBEKeySpec(password.toCharArray(), salt, iterations, HASH_BYTES * 8);
        try {
            return SecretKeyFactory.getInstance("PBKDF2WithHmacSHA256")
                    .generateSecret(spec)
                    .getEncoded();
        } catch (GeneralSecurityException missing) {
            throw new IllegalStateException("this JDK has no PBKDF2WithHmacSHA256", missing);
        } finally {
            spec.clearPassword();
        }
    }

    @Override
    public String toString() {
        Base64.Encoder base64 = Base64.getEncoder();
        return String.join(
                "$", ALGORITHM, Integer.toString(iterations), base64.encodeToString(salt), base64.encodeToString(hash));
    }

    /// Bytes of a password as clients send them.
    static byte[] encodePassword(String password) {
        return password.getBytes(StandardCharsets.UTF_8);
    }
}

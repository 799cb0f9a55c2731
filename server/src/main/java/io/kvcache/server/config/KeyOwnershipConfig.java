package io.kvcache.server.config;

import io.kvcache.core.KvCache;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// How keys say that they are a tenant's, where clients come in as the tenant `default`.
///
/// @param prefixes what keys begin with, and names of namespaces; not secret
/// @param salts what keys end with, behind an `@`; who knows one is the tenant
/// @param saltFile a file with salts, one a line, each of which is good; or null
public record KeyOwnershipConfig(
        List<String> prefixes, List<String> salts, @Nullable String saltFile) {

    /// A tenant that no key names.
    public static final KeyOwnershipConfig NONE = new KeyOwnershipConfig(List.of(), List.of(), null);

    /// No `@` and no slashes, as LMCache has it, and nothing that a pattern of keys takes for something else.
    private static final Pattern SALT = Pattern.compile("[\\x21-\\x7e&&[^@/\\\\*?\\[\\]]]{8,128}");

    private static final List<String> FORBIDDEN_SUFFIXES = List.of(":", "metadata", "kv_bytes");

    public KeyOwnershipConfig {
        prefixes = List.copyOf(prefixes);
        salts = List.copyOf(salts);
    }

    /// Whether a key can name the tenant.
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
                throw new IllegalArgumentException(path + ".salts has one that is none; " + SALT_RULES);
            }
        }
    }

    /// What a salt may be, for messages: they never show one.
    public static final String SALT_RULES = "it takes 8 to 128 letters, digits and signs other than @ / \\ * ? [ ],"
            + " not with : or metadata or kv_bytes at the end";

    /// Whether a text may be a salt.
    public static boolean isSalt(String text) {
        return SALT.matcher(text).matches() && FORBIDDEN_SUFFIXES.stream().noneMatch(text::endsWith);
    }

    /// The salts are left out.
    @Override
    public String toString() {
        return "prefixes " + prefixes + ", " + salts.size() + " salts, salt file " + saltFile;
    }
}

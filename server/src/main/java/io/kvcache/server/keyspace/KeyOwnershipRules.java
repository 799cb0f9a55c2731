package io.kvcache.server.keyspace;

import io.kvcache.core.engine.EngineValueKey;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// Whose a key is by what it says itself: by how it begins, or by the cache salt that it ends with.
///
/// LMCache puts a request's cache salt behind the last `@` of a key, and its Redis connectors put `metadata` and
/// `kv_bytes` behind that. A salt goes before a prefix, and of several prefixes the longest counts.
///
/// **Threads.** Immutable.
public final class KeyOwnershipRules {

    /// No key says whose it is.
    public static final KeyOwnershipRules NONE = new KeyOwnershipRules(Map.of(), Map.of());

    private static final byte SALT_SEPARATOR = '@';

    private final Map<ByteBuffer, String> prefixes;
    private final Map<ByteBuffer, String> salts;
    private final int[] prefixLengths;

    /// Rules, or [#NONE] where there are neither prefixes nor salts.
    ///
    /// @param prefixes a tenant by each beginning of keys
    /// @param salts a tenant by each salt
    public static KeyOwnershipRules of(Map<String, String> prefixes, Map<String, String> salts) {
        return prefixes.isEmpty() && salts.isEmpty() ? NONE : new KeyOwnershipRules(prefixes, salts);
    }

    /// @param prefixes a tenant by each beginning of keys
    /// @param salts a tenant by each salt
    private KeyOwnershipRules(Map<String, String> prefixes, Map<String, String> salts) {
        this.prefixes = byBytes(prefixes);
        this.salts = byBytes(salts);
        int[] lengths = this.prefixes.keySet().stream()
                .mapToInt(ByteBuffer::remaining)
                .distinct()
                .sorted()
                .toArray();
        prefixLengths = IntStream.range(0, lengths.length)
                .map(i -> lengths[lengths.length - 1 - i])
                .toArray();
    }

    private static Map<ByteBuffer, String> byBytes(Map<String, String> texts) {
        Map<ByteBuffer, String> byBytes = new HashMap<>();
        texts.forEach((text, tenant) -> byBytes.put(ByteBuffer.wrap(bytes(text)), tenant));
        return byBytes;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /// The tenant that a key names, or null when it names none.
    public @Nullable String ownerOf(byte[] key) {
        String bySalt = salts.isEmpty() ? null : ownerBySalt(key, EngineValueKey.baseLength(key));
        return bySalt == null ? ownerByPrefix(key, key.length) : bySalt;
    }

    /// The tenant that all keys of a pattern of SCAN name, as far as that shows at the pattern's ends; null when
    /// they may belong to any tenant.
    public @Nullable String ownerOfPattern(byte[] pattern) {
        int head = 0;
        while (head < pattern.length && "*?[\\".indexOf(pattern[head]) < 0) {
            head++;
        }
        int tail = pattern.length;
        while (tail > 0 && "*?]\\".indexOf(pattern[tail - 1]) < 0) {
            tail--;
        }
        byte[] end = Arrays.copyOfRange(pattern, tail, pattern.length);
        String bySalt = salts.isEmpty() ? null : ownerBySalt(end, EngineValueKey.baseLength(end));
        return bySalt == null ? ownerByPrefix(pattern, head) : bySalt;
    }

    /// The tenant that has a salt, or null.
    public @Nullable String ownerOfSalt(String salt) {
        return salts.get(ByteBuffer.wrap(bytes(salt)));
    }

    private @Nullable String ownerBySalt(byte[] key, int length) {
        int at = length - 1;
        while (at >= 0 && key[at] != SALT_SEPARATOR) {
            at--;
        }
        return at < 0 ? null : salts.get(ByteBuffer.wrap(key, at + 1, length - at - 1));
    }

    private @Nullable String ownerByPrefix(byte[] key, int length) {
        for (int each : prefixLengths) {
            String owner = each <= length ? prefixes.get(ByteBuffer.wrap(key, 0, each)) : null;
            if (owner != null) {
                return owner;
            }
        }
        return null;
    }
}

package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectHint;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The values that a client may ask for: those of its tenant and, where keys say whose they are, those of the
/// tenants that they name.
///
/// Commands without a key (list, count, flush) concern the tenant's own values only.
///
/// **Threads.** Any.
public final class KeyspaceRouter {

    private final Keyspace ownKeyspace;
    private final Map<String, Keyspace> keyspaces;
    private final Supplier<KeyOwnershipRules> ownershipRules;

    /// @param all by tenant
    /// @param labels asked each time, as they may be read again
    public KeyspaceRouter(Keyspace own, Map<String, Keyspace> all, Supplier<KeyOwnershipRules> labels) {
        this.ownKeyspace = own;
        this.keyspaces = Map.copyOf(all);
        this.ownershipRules = labels;
    }

    /// The values of one tenant only.
    public static KeyspaceRouter of(Keyspace own) {
        return new KeyspaceRouter(own, Map.of(), () -> KeyOwnershipRules.NONE);
    }

    /// The tenant's own values.
    public Keyspace ownKeyspace() {
        return ownKeyspace;
    }

    /// Returns the keyspace that a key belongs to.
    public Keyspace of(byte[] key) {
        KeyOwnershipRules now = ownershipRules.get();
        return now == KeyOwnershipRules.NONE ? ownKeyspace : keyspaceOfTenant(now.ownerOf(key));
    }

    /// Takes what a client says of keys to whose they are.
    ///
    /// @return of how many of them it was taken
    public int applyHint(List<byte[]> keys, ObjectHint hint) {
        Map<Keyspace, List<byte[]>> byOwner = new HashMap<>();
        keys.forEach(
                key -> byOwner.computeIfAbsent(of(key), _ -> new ArrayList<>()).add(key));
        int taken = 0;
        for (Map.Entry<Keyspace, List<byte[]>> each : byOwner.entrySet()) {
            taken += each.getKey().applyHint(each.getValue(), hint);
        }
        return taken;
    }

    /// Counts the keys that are here, up to the first that is not, and pins them as [ObjectHint.Pin] does. Keys that
    /// cannot be pinned count all the same: those on disk alone, and those beyond the limit of pins.
    ///
    /// @param keys in the order in which they are read
    /// @param pinTime zero for no pins; then earlier ones stay as they are
    public int pinPrefix(List<byte[]> keys, Duration pinTime) {
        int present = 0;
        for (byte[] key : keys) {
            Keyspace owner = of(key);
            if (!owner.isPresent(key)) {
                break;
            }
            if (!pinTime.isZero()) { // at once, before the store can evict what was counted
                var _ = owner.applyHint(List.of(key), new ObjectHint.Pin(pinTime));
            }
            present++;
        }
        return present;
    }

    /// Returns the keyspace that lists the keys of a pattern.
    ///
    /// @param pattern of SCAN or KEYS; null for all keys
    public Keyspace keyspaceOfPattern(byte @Nullable [] pattern) {
        return pattern == null
                ? ownKeyspace
                : keyspaceOfTenant(ownershipRules.get().ownerOfPattern(pattern));
    }

    private Keyspace keyspaceOfTenant(@Nullable String owner) {
        return owner == null ? ownKeyspace : Objects.requireNonNull(keyspaces.get(owner));
    }
}

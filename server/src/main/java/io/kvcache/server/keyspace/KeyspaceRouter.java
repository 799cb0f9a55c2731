package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectHint;
import io.kvcache.transport.cluster.HashSlots;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.IntConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// The values that a client may ask for: those of its tenant and, where keys say whose they are, those of the
/// tenants that they name.
///
/// Commands without a key (list, count, flush) concern the tenant's own values only.
///
/// **Threads.** Any.
public final class KeyspaceRouter {

    /// Keys of a hint or a prefix in one turn of a connection's loop: a few milliseconds where the code is not
    /// compiled yet, and one where it is.
    private static final int KEYS_PER_TURN = 512;

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

    /// Returns whether all keys belong to the tenant's own values.
    public boolean isAllOwn() {
        return ownershipRules.get() == KeyOwnershipRules.NONE;
    }

    /// Returns the keyspace that a key belongs to.
    public Keyspace of(byte[] key) {
        KeyOwnershipRules now = ownershipRules.get();
        return now == KeyOwnershipRules.NONE ? ownKeyspace : keyspaceOfTenant(now.ownerOf(key));
    }

    /// Returns the slot by which servers find a key for clients that know one server. The halves of a value of LMCache
    /// have one, as they are evicted together; clients of Redis Cluster compute a slot for each.
    public int slotOf(byte[] key) {
        return HashSlots.of(of(key).isContent(key) ? ObjectKey.base(key) : key);
    }

    /// Takes what a client says of keys to whose they are, some keys at a time.
    ///
    /// @param later runs the rest when the other connections of the loop have had their turn
    /// @param reply takes the number of keys for which the hint was taken
    public void applyHint(List<byte[]> keys, ObjectHint hint, Consumer<Runnable> later, IntConsumer reply) {
        boolean whole = hint instanceof ObjectHint.Expire
                || (hint instanceof ObjectHint.Label label && label.label().session() != 0);
        if (whole) {
            reply.accept(applyHint(keys, hint));
        } else {
            // The last key is the first victim of those that are let go.
            List<byte[]> ordered = hint instanceof ObjectHint.Forget ? keys.reversed() : keys;
            applyHint(ordered, hint, 0, later, reply);
        }
    }

    private void applyHint(
            List<byte[]> ordered, ObjectHint hint, int takenBefore, Consumer<Runnable> later, IntConsumer reply) {
        int end = Math.min(ordered.size(), KEYS_PER_TURN);
        List<byte[]> now = ordered.subList(0, end);
        int taken = takenBefore + applyHint(hint instanceof ObjectHint.Forget ? now.reversed() : now, hint);
        if (end == ordered.size()) {
            reply.accept(taken);
        } else {
            later.accept(() -> applyHint(ordered.subList(end, ordered.size()), hint, taken, later, reply));
        }
    }

    private int applyHint(List<byte[]> keys, ObjectHint hint) {
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
    /// @param later runs the rest when the other connections of the loop have had their turn
    /// @param reply takes the number of keys
    public void pinPrefix(List<byte[]> keys, Duration pinTime, Consumer<Runnable> later, IntConsumer reply) {
        pinPrefix(keys, 0, pinTime, later, reply);
    }

    private void pinPrefix(List<byte[]> keys, int from, Duration pinTime, Consumer<Runnable> later, IntConsumer reply) {
        int end = Math.min(keys.size(), from + KEYS_PER_TURN);
        int present = from;
        while (present < end && pinIfPresent(keys.get(present), pinTime)) {
            present++;
        }
        if (present < end || end == keys.size()) {
            reply.accept(present);
        } else {
            later.accept(() -> pinPrefix(keys, end, pinTime, later, reply));
        }
    }

    private boolean pinIfPresent(byte[] key, Duration pinTime) {
        Keyspace owner = of(key);
        boolean present = owner.isPresent(key);
        if (present && !pinTime.isZero()) { // at once, before the store can evict what was counted
            var _ = owner.applyHint(List.of(key), new ObjectHint.Pin(pinTime));
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

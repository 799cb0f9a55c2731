package io.kvcache.server.keyspace;

import io.kvcache.core.ObjectHint;
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
/// What has no key (a listing, a count, forgetting everything) is about the tenant's own values alone.
///
/// **Threads.** Any.
public final class Reach {

    private final Keyspace own;
    private final Map<String, Keyspace> all;
    private final Supplier<Labels> labels;

    /// @param all by tenant
    /// @param labels asked each time, as they may be read again
    public Reach(Keyspace own, Map<String, Keyspace> all, Supplier<Labels> labels) {
        this.own = own;
        this.all = Map.copyOf(all);
        this.labels = labels;
    }

    /// One tenant's values and nobody else's.
    public static Reach of(Keyspace own) {
        return new Reach(own, Map.of(), () -> Labels.NONE);
    }

    /// The tenant's own values.
    public Keyspace own() {
        return own;
    }

    /// Where a key's value is.
    public Keyspace of(byte[] key) {
        Labels now = labels.get();
        return now.none() ? own : named(now.ownerOf(key));
    }

    /// Takes what a client says of keys to whose they are.
    ///
    /// @return of how many of them it was taken
    public int hint(List<byte[]> keys, ObjectHint hint) {
        Map<Keyspace, List<byte[]>> byOwner = new HashMap<>();
        keys.forEach(
                key -> byOwner.computeIfAbsent(of(key), _ -> new ArrayList<>()).add(key));
        int taken = 0;
        for (Map.Entry<Keyspace, List<byte[]>> each : byOwner.entrySet()) {
            taken += each.getKey().hint(each.getValue(), hint);
        }
        return taken;
    }

    /// Where the keys of a pattern are listed.
    ///
    /// @param pattern of SCAN or KEYS; null for all keys
    public Keyspace listed(byte @Nullable [] pattern) {
        return pattern == null ? own : named(labels.get().ownerOfAll(pattern));
    }

    private Keyspace named(@Nullable String owner) {
        return owner == null ? own : Objects.requireNonNull(all.get(owner));
    }
}

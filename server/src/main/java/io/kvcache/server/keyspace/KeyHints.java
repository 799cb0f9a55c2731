package io.kvcache.server.keyspace;

import io.kvcache.core.Hint;
import io.kvcache.core.ObjectHint;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/// Takes what clients say of keys to the store, and has the tenant's quota hear of it: what is
/// expected counts as used there too, and what is pinned goes last.
///
/// **Threads.** Any.
final class KeyHints {

    private final Ground ground;
    private final Allowance allowance;
    private final Adoption adoption;

    KeyHints(Ground ground, Allowance allowance, Adoption adoption) {
        this.adoption = adoption;
        this.ground = ground;
        this.allowance = allowance;
    }

    /// The other halves of keys, where these are halves, go with them.
    ///
    /// @return of how many of the keys the hint was taken
    int take(List<byte[]> keys, ObjectHint hint) {
        if (hint instanceof ObjectHint.Label label && label.label().session() != 0) {
            return Math.min(keys.size(), tell(whole(keys), hint));
        }
        List<byte[]> others = new ArrayList<>();
        for (byte[] key : keys) {
            byte[] other = Halves.other(key);
            if (other != null) {
                others.add(other);
            }
        }
        int taken = tell(keys, hint);
        if (!others.isEmpty()) {
            var _ = tell(others, hint);
        }
        return taken;
    }

    /// Each key once, with its other half before it: a turn is told of once, with all that it has,
    /// and of many the last are kept.
    private static List<byte[]> whole(List<byte[]> keys) {
        Set<Key> all = new LinkedHashSet<>();
        for (byte[] key : keys) {
            byte[] other = Halves.other(key);
            if (other != null) {
                all.add(new Key(other));
            }
            all.add(new Key(key));
        }
        return all.stream().map(Key::bytes).toList();
    }

    private int tell(List<byte[]> keys, ObjectHint hint) {
        return switch (hint) {
            case ObjectHint.Pin pin -> pin(keys, pin);
            case ObjectHint.Expect _ -> {
                keys.forEach(key -> allowance.used(new Key(key), ground.namespace()));
                yield told(keys, hint);
            }
            case ObjectHint.Forget _, ObjectHint.Label _, ObjectHint.Weigh _, ObjectHint.Expire _ -> told(keys, hint);
        };
    }

    private int told(List<byte[]> keys, ObjectHint hint) {
        return ground.cache().hintObjects(ground.namespace(), keys, hint);
    }

    private int pin(List<byte[]> keys, ObjectHint.Pin pin) {
        int taken = 0;
        for (byte[] key : keys) {
            if (told(List.of(key), pin) > 0) {
                taken++;
                spare(new Key(key), Math.min(pin.forNanos(), Hint.Pin.MAX_NANOS));
            }
        }
        return taken;
    }

    private void spare(Key key, long forNanos) {
        KeyEntry known = ground.index().find(ground.hash(key));
        KeyEntry entry = known == null ? adoption.adopt(key) : known; // else the quota takes it first
        if (entry != null) {
            entry.sparedUntil(ground.clock().nanos() + forNanos);
        }
    }
}

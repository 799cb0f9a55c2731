package io.kvcache.server.keyspace;

import io.kvcache.core.Hint;
import io.kvcache.core.LocalKvCache;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.core.time.Timeouts;
import io.kvcache.server.keyspace.KeyIndex.KeyEntry;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/// Takes what clients say of keys to the store, and has the tenant's quota hear of it: what is
/// expected counts as used there too, and what is pinned goes last.
///
/// **Threads.** Any.
final class KeyHintApplier {

    private final LocalKvCache cache;
    private final Namespace namespace;
    private final Clock clock;
    private final StoredKeys storedKeys;

    KeyHintApplier(LocalKvCache cache, Namespace namespace, Clock clock, StoredKeys storedKeys) {
        this.cache = cache;
        this.namespace = namespace;
        this.clock = clock;
        this.storedKeys = storedKeys;
    }

    /// The other halves of keys, where these are halves, go with them.
    ///
    /// @return of how many of the keys the hint was taken
    int apply(List<byte[]> keys, ObjectHint hint) {
        if (hint instanceof ObjectHint.Label label && label.label().session() != 0) {
            return Math.min(keys.size(), dispatch(withOtherHalves(keys), hint));
        }
        List<byte[]> others = new ArrayList<>();
        for (byte[] key : keys) {
            byte[] other = ObjectKey.otherHalf(key);
            if (other != null) {
                others.add(other);
            }
        }
        int taken = dispatch(keys, hint);
        if (!others.isEmpty()) {
            var _ = dispatch(others, hint);
        }
        return taken;
    }

    /// Each key once, with its other half before it: a turn is told of once, with all that it has,
    /// and of many the last are kept.
    private static List<byte[]> withOtherHalves(List<byte[]> keys) {
        Set<ByteBuffer> all = new LinkedHashSet<>();
        for (byte[] key : keys) {
            byte[] other = ObjectKey.otherHalf(key);
            if (other != null) {
                all.add(ByteBuffer.wrap(other));
            }
            all.add(ByteBuffer.wrap(key));
        }
        return all.stream().map(ByteBuffer::array).toList();
    }

    private int dispatch(List<byte[]> keys, ObjectHint hint) {
        return switch (hint) {
            case ObjectHint.Pin pin -> pin(keys, pin);
            case ObjectHint.Expect _ -> {
                keys.forEach(key -> storedKeys.recordUse(ObjectKey.of(namespace, key)));
                yield sendToStore(keys, hint);
            }
            case ObjectHint.Forget _, ObjectHint.Label _, ObjectHint.Weigh _, ObjectHint.Expire _ ->
                sendToStore(keys, hint);
        };
    }

    private int sendToStore(List<byte[]> keys, ObjectHint hint) {
        return cache.hintObjects(namespace, keys, hint);
    }

    private int pin(List<byte[]> keys, ObjectHint.Pin pin) {
        int taken = 0;
        for (byte[] key : keys) {
            if (sendToStore(List.of(key), pin) > 0) {
                taken++;
                protect(
                        ObjectKey.of(namespace, key),
                        Math.min(Timeouts.toNanos(pin.time()), Hint.Pin.MAX_TIME.toNanos()));
            }
        }
        return taken;
    }

    private void protect(ObjectKey key, long forNanos) {
        KeyEntry known = storedKeys.index().find(key.digest());
        KeyEntry entry = known == null ? storedKeys.backfill(key) : known; // else the quota takes it first
        if (entry != null) {
            entry.protectUntil(clock.nanos() + forNanos);
        }
    }
}

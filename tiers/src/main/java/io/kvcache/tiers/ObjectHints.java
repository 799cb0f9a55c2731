package io.kvcache.tiers;

import io.kvcache.core.ObjectHint;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.store.HostStore;
import io.kvcache.core.store.NamespaceEntry;
import io.kvcache.core.time.Timeouts;
import io.kvcache.core.tree.RecordHandle;
import java.util.List;

/// Acts on what callers say of objects.
///
/// **Threads.** Any.
final class ObjectHints {

    /// A slot has no less, so that pins of small objects are not without number.
    private static final long PAGE = 4096;

    private final HostStore store;
    private final DiskLoader diskLoader;
    private final AccessRate rate;
    private final TimedPins pins;
    private final TtlQueue ttlQueue;

    ObjectHints(HostStore store, DiskLoader diskLoader, AccessRate rate, TimedPins pins, TtlQueue ttlQueue) {
        this.store = store;
        this.diskLoader = diskLoader;
        this.rate = rate;
        this.pins = pins;
        this.ttlQueue = ttlQueue;
    }

    /// Acts on a hint.
    ///
    /// @return of how many objects it was taken
    int apply(Namespace namespace, List<byte[]> names, ObjectHint hint) {
        NamespaceEntry entry = store.require(namespace);
        List<BlockKey> keys =
                names.stream().map(name -> BlockKey.ofObject(namespace, name)).toList();
        return switch (hint) {
            case ObjectHint.Expect expect ->
                store.hints().expect(entry, keys, rate.expectedWithin(Timeouts.toNanos(expect.delay())))
                        + diskLoader.prefetch(keys);
            case ObjectHint.Forget _ -> store.hints().demote(entry, keys);
            case ObjectHint.Pin pin -> pin(entry, keys, Timeouts.toNanos(pin.time()));
            case ObjectHint.Label label ->
                store.hints().label(entry, keys, label.label().reuseClass());
            case ObjectHint.Weigh weigh -> store.hints().setWeights(entry, keys, Hints.weightExponent(weigh.weight()));
            case ObjectHint.Expire expire -> expire(entry, keys, Timeouts.toNanos(expire.delay()));
        };
    }

    private int pin(NamespaceEntry entry, List<BlockKey> keys, long forNanos) {
        HostStore.MemoryShare share = store.share(entry);
        int taken = 0;
        for (BlockKey key : keys) {
            taken += pin(entry, key, share, forNanos) ? 1 : 0;
        }
        return taken;
    }

    private boolean pin(NamespaceEntry entry, BlockKey key, HostStore.MemoryShare share, long forNanos) {
        if (forNanos == 0) {
            return pins.unpin(key);
        }
        long handle = store.lookup().peekKey(key.hi(), key.lo());
        if (!RecordHandle.isFound(handle)) {
            return false;
        }
        int record = RecordHandle.record(handle);
        if (!store.lookup().isObjectOf(entry, record)) {
            store.lookup().unpin(record);
            return false;
        }
        long bytes = (store.records().bytes(record) + PAGE - 1) / PAGE * PAGE;
        return pins.pin(key, new TimedPins.PinRequest(record, bytes), share, forNanos);
    }

    private int expire(NamespaceEntry entry, List<BlockKey> keys, long afterNanos) {
        if (keys.isEmpty()) {
            return 0;
        }
        ttlQueue.releaseExpired(); // what is over by now takes nobody's place
        int group = store.share(entry).group();
        TtlQueue.TtlKey ttlKey = new TtlQueue.TtlKey(entry.namespace(), keys.getLast());
        TtlQueue.ReleaseAction releaseAction =
                new TtlQueue.ReleaseAction(keys.size(), () -> store.hints().demote(entry, keys));
        return ttlQueue.add(group, ttlKey, releaseAction, afterNanos) ? keys.size() : 0;
    }
}

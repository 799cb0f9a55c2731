package io.kvcache.core.store;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.tier.TierBlock;
import java.util.BitSet;
import java.util.HashMap;
import java.util.Map;

/// What was dropped, and which objects were put, while disks had not told everything that they
/// held: their copies are older, and do not count. An object whose newest copy was told and could not be
/// kept counts as dropped: its older copies have other bytes.
///
/// At the opening this is remembered key by key until all disks have told. A disk that was out may stay out
/// for long;
/// so of a disk that comes back no object counts at all. Its blocks do: whatever bytes a block's key had, it has.
///
/// **Threads.** Owned by the store's lock.
final class RecoveryExclusions {

    /// And whether they were dropped.
    private final Map<BlockKey, Boolean> keys = new HashMap<>();

    private final BitSet namespaces = new BitSet();
    private final BitSet returningDisks = new BitSet();
    private boolean isRecovering;

    /// A disk was added, which will tell what it holds.
    void begin() {
        isRecovering = true;
    }

    /// All disks have told.
    void end() {
        isRecovering = false;
        keys.clear();
        namespaces.clear();
    }

    /// A key was dropped.
    void addDropped(long keyHi, long keyLo) {
        if (isRecovering) {
            keys.put(new BlockKey(keyHi, keyLo), true);
        }
    }

    /// An object was put under a key.
    void addReplaced(long keyHi, long keyLo) {
        if (isRecovering) {
            keys.putIfAbsent(new BlockKey(keyHi, keyLo), false);
        }
    }

    /// A namespace was dropped.
    void addNamespace(int namespaceId) {
        if (isRecovering) {
            namespaces.set(namespaceId);
        }
    }

    /// A disk is out.
    void markReturning(int disk) {
        returningDisks.set(disk);
    }

    /// Whether what a disk has told of is older for nothing but a put: then it is the last durable value of its key.
    boolean isReplacedOnly(TierBlock block, int disk) {
        return !returningDisks.get(disk)
                && !namespaces.get(block.namespaceId())
                && Boolean.FALSE.equals(keys.get(new BlockKey(block.keyHi(), block.keyLo())));
    }

    /// Whether what a disk has told of is older than what callers did.
    boolean excludes(TierBlock block, int disk) {
        return (block.isObject() && returningDisks.get(disk))
                || namespaces.get(block.namespaceId())
                || (!keys.isEmpty() && keys.containsKey(new BlockKey(block.keyHi(), block.keyLo())));
    }
}

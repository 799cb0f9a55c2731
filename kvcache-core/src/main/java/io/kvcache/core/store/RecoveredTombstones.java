package io.kvcache.core.store;

import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.Tombstone;
import java.util.HashSet;
import java.util.Set;

/// What does not count of that which disks tell they held: they have told of a burial before, or are
/// still to be told of it. Owned by the store's lock.
final class RecoveredTombstones {

    private final Set<Key> keys = new HashSet<>();
    private final Set<DiskNamespace> namespaces = new HashSet<>();

    private record Key(int disk, long hi, long lo) {}

    private record DiskNamespace(int disk, int namespaceId) {}

    /// A disk has told of the burial of a key.
    void add(int disk, long keyHi, long keyLo) {
        keys.add(new Key(disk, keyHi, keyLo));
    }

    /// A disk is still to be told of a burial.
    void add(int disk, Tombstone burial) {
        if (burial.isNamespace()) {
            namespaces.add(new DiskNamespace(disk, burial.namespaceId()));
        } else {
            add(disk, burial.keyHi(), burial.keyLo());
        }
    }

    /// Whether a copy that a disk tells of now is buried.
    boolean covers(TierBlock block, int disk) {
        return (!keys.isEmpty() && keys.contains(new Key(disk, block.keyHi(), block.keyLo())))
                || (!namespaces.isEmpty() && namespaces.contains(new DiskNamespace(disk, block.namespaceId())));
    }

    /// A disk is out, and begins anew.
    void clearDisk(int disk) {
        keys.removeIf(each -> each.disk == disk);
        namespaces.removeIf(each -> each.disk == disk);
    }

    /// All disks have told.
    void clear() {
        keys.clear();
        namespaces.clear();
    }
}

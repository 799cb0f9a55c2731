package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierListener;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;

/// Which number of the store's stands for which of the log's, both ways. Owned by the log's thread.
final class NamespaceIds {

    /// Where an entry's identity has the number of its namespace.
    static final int SHIFT = 16;

    private static final int UNKNOWN = -1;

    /// The store did not take the namespace.
    private static final int REFUSED = -2;

    private final TierListener store;
    private int[] logIds = new int[0];
    private int[] storeIds = new int[0];

    NamespaceIds(TierListener store) {
        this.store = store;
    }

    void map(int ofStore, int ofLog) {
        logIds = with(logIds, ofStore, ofLog);
        storeIds = with(storeIds, ofLog, ofStore);
    }

    /// The log's number of a namespace of the store's, or -1 when the log has none yet.
    int toLogId(int namespaceId) {
        return namespaceId < logIds.length ? logIds[namespaceId] : UNKNOWN;
    }

    /// The store's number of a namespace of the log's, registered now if need be; or negative when
    /// the store does not take it.
    int toStoreId(int number, Supplier<List<Namespace>> namespaces) {
        int known = number < storeIds.length ? storeIds[number] : UNKNOWN;
        if (known != UNKNOWN) {
            return known;
        }
        int id = store.namespaceId(namespaces.get().get(number));
        if (id < 0) {
            storeIds = with(storeIds, number, REFUSED);
            return REFUSED;
        }
        map(id, number);
        return id;
    }

    private static int[] with(int[] array, int index, int value) {
        int[] larger = array;
        if (index >= array.length) {
            larger = Arrays.copyOf(array, Math.max(index + 1, 2 * array.length));
            Arrays.fill(larger, array.length, larger.length, UNKNOWN);
        }
        larger[index] = value;
        return larger;
    }
}

package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierListener;
import io.kvcache.tiers.disk.LogMount.SuperblockWriter;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.List;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/// Gives numbers to namespaces, and translates between them and those of the store. A number may be used once both
/// copies of the superblock know it.
final class NamespaceTable {

    private static final int UNKNOWN = -1;

    /// The store did not take the namespace.
    private static final int REFUSED = -2;

    private final SuperblockWriter superblockWriter;
    private final LogIo io;
    private final TierListener listener;
    private final Queue<Namespace> waiting = new ArrayDeque<>();
    private int[] logIds = new int[0];
    private int[] storeIds = new int[0];

    NamespaceTable(SuperblockWriter superblockWriter, LogIo io, TierListener listener) {
        this.superblockWriter = superblockWriter;
        this.io = io;
        this.listener = listener;
    }

    /// Those that have a number, by it.
    List<Namespace> all() {
        return superblockWriter.current().namespaces();
    }

    /// How many numbers may be used.
    int size() {
        return all().size();
    }

    /// The number of a namespace, or -1.
    int idOf(Namespace namespace) {
        return all().indexOf(namespace);
    }

    /// The log's number of a namespace of the store's, or -1 when it is not known yet: then [#register] it.
    int toLogId(int storeId) {
        return storeId < logIds.length ? logIds[storeId] : UNKNOWN;
    }

    /// Has a namespace of the store's get a number.
    ///
    /// @return RETRY once that is on its way, REJECTED when it never gets one
    SubmitResult register(int storeId) {
        Namespace namespace = listener.namespace(storeId);
        int number = idOf(namespace);
        if (number >= 0) {
            map(storeId, number);
            return SubmitResult.RETRY;
        }
        return register(namespace) == SubmitResult.ACCEPTED ? SubmitResult.RETRY : SubmitResult.REJECTED;
    }

    /// Gives a namespace a number that survives a crash.
    ///
    /// @return ACCEPTED, REJECTED, or RETRY when the table has no room for it
    SubmitResult register(Namespace namespace) {
        if (!io.canWrite()) {
            return SubmitResult.REJECTED;
        }
        if (idOf(namespace) < 0 && superblockWriter.current().withNamespace(namespace) == null) {
            return SubmitResult.RETRY;
        }
        if (!waiting.contains(namespace)) {
            waiting.add(namespace);
        }
        return SubmitResult.ACCEPTED;
    }

    void pump() {
        if (superblockWriter.isBusy() || waiting.isEmpty() || !io.canWrite()) {
            return;
        }
        Namespace next = waiting.remove();
        int number = idOf(next);
        Superblock more = superblockWriter.current().withNamespace(next);
        if (number >= 0) {
            onRegistered(next, number);
        } else if (more != null) {
            superblockWriter.replace(more, () -> onRegistered(next, size() - 1));
        }
    }

    private void onRegistered(Namespace namespace, int number) {
        int id = listener.namespaceId(namespace);
        if (id >= 0) {
            map(id, number);
        }
    }

    boolean isIdle() {
        return !superblockWriter.isBusy() && waiting.isEmpty();
    }

    /// Returns the store's block of an entry, or null when the store refuses to register the namespace.
    @Nullable
    TierBlock toTierBlock(DiskEntry entry) {
        int id = toStoreId(entry.namespace());
        return id < 0
                ? null
                : new TierBlock(
                        entry.keyHi(),
                        entry.keyLo(),
                        entry.parentHi(),
                        entry.parentLo(),
                        id,
                        entry.isObject(),
                        entry.depth(),
                        entry.bytes(),
                        entry.checksum(),
                        entry.engineHash());
    }

    private int toStoreId(int number) {
        int known = number < storeIds.length ? storeIds[number] : UNKNOWN;
        if (known != UNKNOWN) {
            return known;
        }
        int id = listener.namespaceId(all().get(number));
        if (id < 0) {
            storeIds = with(storeIds, number, REFUSED);
            return REFUSED;
        }
        map(id, number);
        return id;
    }

    private void map(int storeId, int logId) {
        logIds = with(logIds, storeId, logId);
        storeIds = with(storeIds, logId, storeId);
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

package io.kvcache.core.store;

import static io.kvcache.core.policy.RecordView.NONE;

import io.kvcache.core.policy.GhostCache;
import io.kvcache.core.tree.RecordPool;
import org.jspecify.annotations.Nullable;

/// What is remembered of puts: of which kind each was and when, and how often what was put has been
/// used; of records that nobody has any more too, in [GhostCache], of twice as many as there are
/// records.
///
/// Time is the bytes that were put, in steps of 64 KiB. All that takes 6 bytes of heap a record and
/// 16 to 32 for what has left, of which there is a sixteenth of the heap at most.
///
/// **Threads.** Owned by the store's lock.
final class PutHistory {

    private static final int STEP_SHIFT = 16;

    /// [GhostCache] has steps of 16.
    private static final int READING_SHIFT = 4;

    private final RecordPool pool;
    private final ObjectLinks objectLinks;
    private final GhostCache ghostCache;
    private final short[] kinds;
    private final int[] times;
    private long bytes;

    PutHistory(RecordPool pool, ObjectLinks chains) {
        this.pool = pool;
        this.objectLinks = chains;
        ghostCache = new GhostCache(Math.min(2L * pool.capacity(), maxGhosts()));
        kinds = new short[pool.capacity()];
        times = new int[pool.capacity()];
    }

    /// A sixteenth of the heap, whatever the store: an entry takes 8 bytes, and twice as many may
    /// be made as are asked for.
    private static long maxGhosts() {
        return Runtime.getRuntime().maxMemory() / 16 / (2 * Long.BYTES);
    }

    /// A block is about to be put. Behind one that is of a prompt's last blocks and that nobody has
    /// used it is of the same prompt.
    ///
    /// @param blocks of its prompt from this one on, or 0 when nobody knows
    void onPutStarted(int record, int blocks) {
        int parent = pool.parent(record);
        boolean unused = parent != NONE && RecordFlags.uses(pool.flags(parent)) == 0;
        int depth = pool.depth(record);
        if (blocks == 0) {
            kinds[record] = (short) PromptClass.ofSingleBlock(depth);
        } else if (unused && !PromptClass.isSingleBlock(kinds[parent])) {
            kinds[record] = kinds[parent];
        } else {
            kinds[record] = (short) PromptClass.of(blocks, depth);
        }
    }

    /// A record was put. Objects have their place in a chain by now.
    void onPut(int record) {
        bytes += pool.bytes(record);
        times[record] = now();
        if (RecordFlags.isObject(pool.flags(record))) {
            kinds[record] = (short) PromptClass.ofSingleBlock(objectLinks.depth(record));
        }
    }

    /// An object takes the place of another.
    void onReplacing(int record, int older) {
        kinds[record] = kinds[older];
        times[record] = times[older];
    }

    /// An object was put in place of another.
    void onReplaced(int record) {
        bytes += pool.bytes(record);
    }

    /// The [PromptClass] of a record.
    int promptClass(int record) {
        return kinds[record];
    }

    /// Bytes that were put since a record was.
    long bytesSincePut(int record) {
        return elapsed(times[record]);
    }

    private long elapsed(int time) {
        return Integer.toUnsignedLong(now() - time) << STEP_SHIFT;
    }

    private int now() {
        return (int) (bytes >>> STEP_SHIFT);
    }

    /// A record has left, nobody has it any more, and it may be put again.
    void onForgotten(int record) {
        int uses = RecordFlags.uses(pool.flags(record));
        int known = uses > 0 ? uses - 1 : RecordFlags.MAX_USES + kinds[record];
        long now = bytes >>> STEP_SHIFT;
        long put = now - (bytesSincePut(record) >>> STEP_SHIFT);
        ghostCache.put(pool.fingerprint(record), known, Math.max(0, put) << READING_SHIFT, now << READING_SHIFT);
    }

    /// What was known of a record when it left, or null.
    @Nullable
    PastPut takeGhost(int record) {
        long entry = ghostCache.remove(pool.fingerprint(record));
        if (entry == GhostCache.NONE) {
            return null;
        }
        int known = GhostCache.classOf(entry);
        int uses = known < RecordFlags.MAX_USES ? known + 1 : 0;
        long put = GhostCache.lastUse(entry, (bytes >>> STEP_SHIFT) << READING_SHIFT) >>> READING_SHIFT;
        return new PastPut(uses, uses > 0 ? 0 : known - RecordFlags.MAX_USES, elapsed((int) put));
    }

    /// What was known of a record that has come back.
    ///
    /// @param kind of its put, when it was not used after that
    /// @param since bytes that were put since it was
    record PastPut(int uses, int kind, long since) {}
}

package io.kvcache.core.policy;

/// Blocks that requests will use which are known to come, and how many requests.
///
/// A bounded memory: the blocks that were expected first are forgotten first. A request that uses a
/// block fulfils one expectation of it. Nothing is kept before the first hint.
///
/// **Threads.** One writer, the holder of the store's lock.
public final class Expectations {

    /// Blocks that are expected at most: a thousand requests of 128 blocks, at 48 bytes each.
    private static final int MOST_BLOCKS = 1 << 17;

    private static final GhostTable NOTHING = new GhostTable(1);

    private GhostTable counts = NOTHING;

    Expectations() {}

    /// One more request is known to use a block, resident or not.
    public void add(long fingerprint) {
        if (counts == NOTHING) {
            counts = new GhostTable(MOST_BLOCKS);
        }
        counts.put(fingerprint, counts.take(fingerprint) + 1);
    }

    boolean isEmpty() {
        return counts.size() == 0;
    }

    /// A request uses a block.
    ///
    /// @return whether more are known to come
    boolean fulfil(long fingerprint) {
        if (isEmpty()) {
            return false;
        }
        int left = counts.take(fingerprint) - 1;
        if (left > 0) {
            counts.put(fingerprint, left);
        }
        return left > 0;
    }

    long bytes() {
        return counts == NOTHING ? 0 : counts.bytes();
    }
}

package io.kvcache.core.policy;

/// What callers said of a resident block, in a byte that each record has once anything was said.
///
/// ```
/// 0 (2 bits) | halvings of its weight (2) | reuse class (4)
/// ```
final class BlockLabel {

    /// Nothing was said.
    static final byte NONE = 0;

    /// Different bytes there are.
    static final int COUNT = 1 << 6;

    /// Reuse classes that are told apart, the one of which nothing is said included. With the
    /// model's own classes they fit the classes that [GhostCache] has.
    static final int REUSE_CLASSES = 12;

    /// Halvings of a weight: an eighth is the least.
    static final int MAX_HALVINGS = 3;

    private static final int REUSE_MASK = 0xF;
    private static final int HALVINGS_SHIFT = 4;

    private BlockLabel() {}

    static int reuseClass(int label) {
        return label & REUSE_MASK;
    }

    static int halvings(int label) {
        return label >>> HALVINGS_SHIFT;
    }

    static byte of(int reuseClass, int halvings) {
        assert reuseClass >= 0 && reuseClass < REUSE_CLASSES : "reuse class " + reuseClass;
        assert halvings >= 0 && halvings <= MAX_HALVINGS : halvings + " halvings";
        return (byte) (halvings << HALVINGS_SHIFT | reuseClass);
    }
}

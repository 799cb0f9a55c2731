package io.kvcache.core;

/// Facts about a request that only the inference server knows.
///
/// @param kind what kind of request it is
/// @param session which session it is of, of those in one namespace; 0 for none
/// @param turn which request of its session it is, from 1; 0 when that is not known
/// @param last whether the session ends with it, so that no other request will go on where it ends
public record RequestLabel(RequestKind kind, long session, int turn, boolean last) {

    /// Reuse classes there are: see [#reuseClass].
    public static final int REUSE_CLASSES = 12;

    private static final int STAGES = 3;

    /// @throws IllegalArgumentException when `turn` is negative
    public RequestLabel {
        if (turn < 0) {
            throw new IllegalArgumentException("turn is " + turn + "; it takes 1 and up, 0 for not known");
        }
    }

    /// Returns a label with this kind and without a session.
    public static RequestLabel of(RequestKind kind) {
        return new RequestLabel(kind, 0, 0, false);
    }

    /// The class in which the reuse of the request's blocks is learned: its kind, and whether it is
    /// of the session's first turn (or of one that is not known), of a later one, or of the last.
    ///
    /// @return 0 (nothing is known) to [#REUSE_CLASSES], exclusive
    public int reuseClass() {
        int stage = last ? 2 : turn > 1 ? 1 : 0;
        return kind.code() * STAGES + stage;
    }
}

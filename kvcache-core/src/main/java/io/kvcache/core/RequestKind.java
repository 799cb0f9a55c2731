package io.kvcache.core;

/// What kind of request blocks are of. The names are for people: how blocks of a kind are reused is
/// learned from them, so a kind may stand for whatever a server can tell apart.
public enum RequestKind {
    /// Nothing is said, or none of the others.
    OTHER(0),
    /// People who read and think between turns.
    CHAT(1),
    /// Loops that come back as soon as a tool has answered.
    AGENT(2),
    /// Prompts by the thousand that share their beginnings and come once.
    BATCH(3);

    private final int code;

    RequestKind(int code) {
        this.code = code;
    }

    /// What stands for it in frames, from 0.
    public int code() {
        return code;
    }

    /// The kind with a code; [#OTHER] for one that is not known.
    public static RequestKind of(int code) {
        for (RequestKind kind : values()) {
            if (kind.code == code) {
                return kind;
            }
        }
        return OTHER;
    }
}

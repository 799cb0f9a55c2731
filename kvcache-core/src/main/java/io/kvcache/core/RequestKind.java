package io.kvcache.core;

/// The kind of request that blocks belong to. The policy learns the reuse of each kind from its traffic, so a kind
/// may stand for any distinction that a server can make. The names are suggestions.
///
/// Why an answer ended says most about when its session returns: after a tool call in seconds, after the end of a
/// turn once a person has read it.
public enum RequestKind {
    /// Unknown, or none of the others.
    OTHER(0),
    /// People who read and think between turns: the answer ended the turn.
    CHAT(1),
    /// Agent loops that return as soon as a tool has answered: the answer ended in a tool call.
    AGENT(2),
    /// Large batches of one-off prompts with shared prefixes.
    BATCH(3);

    private final int code;

    RequestKind(int code) {
        this.code = code;
    }

    /// Returns the code on the wire, from 0.
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

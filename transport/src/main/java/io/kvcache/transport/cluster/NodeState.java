package io.kvcache.transport.cluster;

/// What a server of a cluster does at present. The order of the constants is fixed by the protocol.
public enum NodeState {
    /// It learns what the others know, and owns nothing yet.
    JOINING,
    /// It owns its groups.
    SERVING,
    /// It is about to leave: it owns nothing any more, and hands over what it has.
    DRAINING
}

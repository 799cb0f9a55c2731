package io.kvcache.server.config;

/// How an event is written in MessagePack.
public enum EventEncoding {
    /// A map with a member `type`, as vLLM does from 0.24 on.
    MAP,
    /// An array that begins with its type, as vLLM did before.
    ARRAY
}

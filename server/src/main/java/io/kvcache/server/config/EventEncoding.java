package io.kvcache.server.config;

/// How an event is written in MessagePack.
public enum EventEncoding {
    /// A map with a member `type`: vLLM from 0.24 on (its pull request 42892, June 2026), SGLang from September 2026
    /// on.
    MAP,
    /// An array that begins with its type: vLLM up to 0.23, SGLang before.
    ARRAY
}

package io.kvcache.server.config;

/// How an event names a block.
public enum EventHashes {
    /// The low 64 bits of the engine's own hash as an unsigned number, as vLLM names its blocks; of a
    /// block whose tokens were hashed here, those of its key.
    ENGINE,
    /// All 16 bytes of the key.
    KEY
}

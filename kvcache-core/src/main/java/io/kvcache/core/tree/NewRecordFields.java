package io.kvcache.core.tree;

/// What a record is told when it is taken.
///
/// @param parent record of the block before, or -1
/// @param depth blocks before this one
/// @param flags `namespace << 16 | marks`
/// @param bytes of the block or object
/// @param engineHash low 64 bits of the engine's own hash, or 0
/// @param hostPage first page of the slot
public record NewRecordFields(
        long keyHi, long keyLo, int parent, int depth, int flags, int bytes, long engineHash, int hostPage) {}

package io.kvcache.tiers.memory;

import java.nio.file.Path;

/// An open file whose pages are memory, before it is mapped.
///
/// **Ownership.** Whoever creates one calls `release` once, which closes the descriptor and removes the name.
///
/// @param path what another process opens to map the same pages
/// @param release must not throw
record SharedMemoryFile(int descriptor, Path path, String description, Runnable release) {}

package io.kvcache.core.shm;

/// Names the files in memory that processes on the same host map to read a store without asking it.
///
/// @param directory absolute, mode 0700
/// @param slots name of the file in it that blocks and objects lie in
/// @param records name of the file in it that begins with a [io.kvcache.core.tree.IndexHeader], and goes on
///     with the index
/// @param epoch of the store, as its header has it: tells these files from earlier ones of the same names
public record SharedMemoryFiles(String directory, String slots, String records, long epoch) {}

package io.kvcache.bench.transport;

/// What moving chains of blocks of 64 KiB leaves on the heap, in bytes.
///
/// @param what is done, over what
/// @param request in this process, with one block
/// @param block in this process, for each further block of a request
/// @param serverRequest in the server's process
/// @param serverBlock likewise
public record HeapResult(String what, double request, double block, double serverRequest, double serverBlock) {}

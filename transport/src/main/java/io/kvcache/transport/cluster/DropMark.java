package io.kvcache.transport.cluster;

/// What makes one drop of a client recognizable at all servers that it asks.
///
/// @param millis when the client began it, in milliseconds since 1970 by its clock; 0 if unknown
/// @param id a random number other than 0, the same at all servers; 0 if unknown
public record DropMark(long millis, long id) {

    /// A drop that no server recognizes: each server that hears of it takes it for another one.
    public static final DropMark NONE = new DropMark(0, 0);
}

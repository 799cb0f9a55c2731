package io.kvcache.server.keyspace;

import java.util.List;

/// A run of a listing.
///
/// @param next where to go on; 0 when there is nothing more
public record KeyPage(List<byte[]> keys, long next) {
    public KeyPage {
        keys = List.copyOf(keys);
    }
}

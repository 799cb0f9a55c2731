package io.kvcache.core.event;

import io.kvcache.core.identity.Namespace;
import java.util.List;
import java.util.Map;

/// All that was stored just before one event: apply the events from [#nextSequence()] on to keep up.
///
/// @param nextSequence first event that is not in the snapshot
/// @param stored one STORED event for each block and object, parents before children; their sequence numbers are
///     those of no event and read -1
/// @param namespaces by the number that events carry
public record StoreSnapshot(long nextSequence, List<CacheEvent> stored, Map<Integer, Namespace> namespaces) {
    public StoreSnapshot {
        stored = List.copyOf(stored);
        namespaces = Map.copyOf(namespaces);
    }
}

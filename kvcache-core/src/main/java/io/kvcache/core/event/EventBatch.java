package io.kvcache.core.event;

import java.util.List;

/// A run of events without gaps.
///
/// @param hasGap whether events between the asked sequence and the first of these are no longer kept: take a snapshot
/// @param nextSequence what to ask for next
public record EventBatch(List<CacheEvent> events, boolean hasGap, long nextSequence) {
    public EventBatch {
        events = List.copyOf(events);
    }
}

package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.BlockKey;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/// What a router makes of the event stream: the keys that are stored, by events alone. Checks on the way that the
/// numbers have no gaps, that parents come before their children and leave after them, and that nothing enters twice
/// or leaves twice.
final class EventFollower {

    private static final int AT_ONCE = 1 << 16;

    private final EventStream events;
    private final Map<BlockKey, CacheEvent> stored = new HashMap<>();
    private final Map<BlockKey, Integer> children = new HashMap<>();
    private final EnumMap<EventKind, Integer> counts = new EnumMap<>(EventKind.class);
    private long next;

    EventFollower(EventStream events) {
        this.events = events;
        next = events.nextSequence();
    }

    void follow() {
        EventBatch batch = events.since(next, AT_ONCE);
        assertThat(batch.lost()).as("events before %d lost", next).isFalse();
        for (CacheEvent event : batch.events()) {
            assertThat(event.sequence()).isEqualTo(next);
            apply(event);
            next++;
        }
        assertThat(batch.nextSequence()).isEqualTo(next).isEqualTo(events.nextSequence());
    }

    private void apply(CacheEvent event) {
        BlockKey key = new BlockKey(event.keyHi(), event.keyLo());
        BlockKey parent = new BlockKey(event.parentHi(), event.parentLo());
        counts.merge(event.kind(), 1, Integer::sum);
        if (event.kind().enters()) {
            assertThat(stored.put(key, event)).as("stored twice: %s", event).isNull();
            if (event.depth() > 0) {
                CacheEvent above = Objects.requireNonNull(stored.get(parent), () -> "stored without parent: " + event);
                assertThat(above.depth()).isEqualTo(event.depth() - 1);
                children.merge(parent, 1, Integer::sum);
            }
        } else {
            assertThat(stored.remove(key))
                    .as("removed but not stored: %s", event)
                    .isNotNull();
            assertThat(children.getOrDefault(key, 0))
                    .as("children left behind: %s", event)
                    .isZero();
            if (event.depth() > 0) {
                children.merge(parent, -1, Integer::sum);
            }
        }
    }

    boolean has(BlockKey key) {
        return stored.containsKey(key);
    }

    Map<BlockKey, CacheEvent> stored() {
        return stored;
    }

    int count(EventKind kind) {
        return counts.getOrDefault(kind, 0);
    }
}

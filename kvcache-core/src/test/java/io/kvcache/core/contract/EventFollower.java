package io.kvcache.core.contract;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.identity.BlockKey;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;

/// A router's view of the event stream: the keys that are stored, by events alone. Checks on the way that the
/// numbers have no gaps, that parents come before their children and leave after them, and that nothing enters
/// twice or leaves twice.
public final class EventFollower {

    private static final int AT_ONCE = 1 << 16;

    private final EventStream events;
    private final Map<BlockKey, CacheEvent> stored = new HashMap<>();
    private final Map<BlockKey, Integer> children = new HashMap<>();
    private final EnumMap<EventKind, Integer> counts = new EnumMap<>(EventKind.class);
    private long next;

    /// Starts with what is stored now.
    public EventFollower(EventStream events) {
        this.events = events;
        StoreSnapshot snapshot = events.snapshot();
        snapshot.stored().forEach(this::enter);
        next = snapshot.nextSequence();
    }

    /// Applies the events since the last time.
    public void follow() {
        EventBatch batch = events.since(next, AT_ONCE);
        while (!batch.events().isEmpty()) {
            assertThat(batch.hasGap()).as("events before %d lost", next).isFalse();
            for (CacheEvent event : batch.events()) {
                assertThat(event.sequence()).isEqualTo(next);
                apply(event);
                next++;
            }
            assertThat(batch.nextSequence()).isEqualTo(next);
            batch = events.since(next, AT_ONCE);
        }
    }

    private void apply(CacheEvent event) {
        counts.merge(event.kind(), 1, Integer::sum);
        if (event.kind().isAddition()) {
            enter(event);
        } else {
            leave(event);
        }
    }

    private void enter(CacheEvent event) {
        BlockKey key = new BlockKey(event.keyHi(), event.keyLo());
        BlockKey parent = new BlockKey(event.parentHi(), event.parentLo());
        assertThat(stored.put(key, event)).as("stored twice: %s", event).isNull();
        if (event.depth() > 0) {
            CacheEvent above = Objects.requireNonNull(stored.get(parent), () -> "stored without parent: " + event);
            assertThat(above.depth()).isEqualTo(event.depth() - 1);
            children.merge(parent, 1, Integer::sum);
        } else {
            assertThat(parent).isEqualTo(new BlockKey(0, 0));
        }
    }

    private void leave(CacheEvent event) {
        BlockKey key = new BlockKey(event.keyHi(), event.keyLo());
        assertThat(stored.remove(key)).as("removed but not stored: %s", event).isNotNull();
        assertThat(children.getOrDefault(key, 0))
                .as("children left behind: %s", event)
                .isZero();
        if (event.depth() > 0) {
            children.merge(new BlockKey(event.parentHi(), event.parentLo()), -1, Integer::sum);
        }
    }

    /// Number of the next event.
    public long next() {
        return next;
    }

    /// Returns whether the key is stored, according to the events.
    public boolean has(BlockKey key) {
        return stored.containsKey(key);
    }

    /// The last STORED event of each key that is stored.
    public Map<BlockKey, CacheEvent> stored() {
        return stored;
    }

    /// Events of this kind so far; what the first snapshot held counts for none.
    public int count(EventKind kind) {
        return counts.getOrDefault(kind, 0);
    }
}

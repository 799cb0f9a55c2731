package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.SimAssertions.require;

import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockKey;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/// Blocks that were dropped and not put again: no disk may bring them back, neither when it was out for a
/// while, nor after a crash if a flush that began after the drop was answered with true.
final class DroppedBlocks {

    /// And the number of the drop: what is put and dropped again while a flush is under way was dropped after it began.
    private final Map<BlockKey, Long> droppedKeys = new HashMap<>();

    private final Set<BlockKey> durable = new HashSet<>();
    private final boolean binding;
    private long drops;

    /// @param binding whether the disks keep what they say they have
    DroppedBlocks(boolean binding) {
        this.binding = binding;
    }

    void onDropped(BlockKey key) {
        if (binding) {
            droppedKeys.put(key, ++drops);
        }
    }

    /// Whoever puts a block again has it in host memory before any disk does.
    void onStored(BlockKey key, TierKind tier) {
        require(
                tier != TierKind.DISK || !droppedKeys.containsKey(key),
                () -> key + " was dropped and not put again, and a disk brings it back");
        droppedKeys.remove(key);
        durable.remove(key);
    }

    /// Number of the last drop, when a flush begins.
    long lastDrop() {
        return drops;
    }

    /// A flush has ended with true.
    ///
    /// @param last drop before it began
    void onFlushed(long last) {
        droppedKeys.forEach((key, drop) -> {
            if (drop <= last) {
                durable.add(key);
            }
        });
    }

    /// The store is no more, and opened anew.
    void onRestart() {
        droppedKeys.keySet().retainAll(durable);
    }
}

package io.kvcache.bench.sim;

import static io.kvcache.bench.sim.Checks.require;

import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockKey;
import java.util.HashSet;
import java.util.Set;

/// Blocks that were dropped and not put again: no disk may bring them back, neither when it was out for a
/// while, nor after a crash if a flush that began after the drop was answered with true.
final class Gone {

    private final Set<BlockKey> gone = new HashSet<>();
    private final Set<BlockKey> durable = new HashSet<>();
    private final boolean binding;

    /// @param binding whether the disks keep what they say they have
    Gone(boolean binding) {
        this.binding = binding;
    }

    void dropped(BlockKey key) {
        if (binding) {
            gone.add(key);
        }
    }

    /// Whoever puts a block again has it in host memory before any disk does.
    void entered(BlockKey key, TierKind tier) {
        require(
                tier != TierKind.DISK || !gone.contains(key),
                () -> key + " was dropped and not put again, and a disk brings it back");
        gone.remove(key);
        durable.remove(key);
    }

    /// What is gone when a flush begins.
    Set<BlockKey> now() {
        return Set.copyOf(gone);
    }

    /// That flush has ended with true.
    void flushed(Set<BlockKey> then) {
        then.stream().filter(gone::contains).forEach(durable::add);
    }

    /// The store is no more, and opened anew.
    void restart() {
        gone.clear();
        gone.addAll(durable);
    }
}

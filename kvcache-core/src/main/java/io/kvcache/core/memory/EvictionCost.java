package io.kvcache.core.memory;

/// What emptying a slab would cost its owner.
@FunctionalInterface
public interface EvictionCost {

    /// A cost from 0, or a negative number when the slab cannot be emptied now.
    long costOf(SlabOwners owners);
}

package io.kvcache.core.memory;

/// What emptying a slab would cost its owner.
@FunctionalInterface
public interface SlabPrice {

    /// A cost from 0, or a negative number when the slab cannot be emptied now.
    long of(SlabOwners owners);
}

package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;

/// Is notified of the look-ups of chains in a store, and of nothing else: single keys are looked up far oftener.
///
/// **Threads.** Called on the thread that uses the store, by any number at a time. It must return at once and must
/// not throw. An exception is logged once and otherwise ignored.
@FunctionalInterface
public interface ChainListener {

    /// A chain's blocks were asked for.
    ///
    /// @param from the first requested block
    /// @param found how many of them are here, or on their way from a slower tier
    /// @param blockBytes of each
    void onAccess(BlockChain chain, int from, int found, int blockBytes);
}

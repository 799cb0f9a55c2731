package io.kvcache.core;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import org.jspecify.annotations.Nullable;

/// Hears what is asked of a store and what is put into it.
///
/// **Threads.** Called on the thread that uses the store, by any number at a time. It returns at once, throws
/// nothing, and does not use the store. What it throws all the same is logged once, and fails no call.
public interface AccessListener {

    /// What a caller wanted of one block or object.
    enum LookupKind {
        /// To have it.
        GET,
        /// To know whether it is here.
        LOOK
    }

    /// A chain's blocks were asked for.
    ///
    /// @param from the first that was
    /// @param found how many of them are here, or on their way from a slower tier
    /// @param blockBytes of each
    void onAccess(BlockChain chain, int from, int found, int blockBytes);

    /// One block or object was asked for by its key.
    ///
    /// @param bytes of it, or -1 when it is not here; 0 where the store did not look
    void onAccess(LookupKind lookupKind, Namespace namespace, BlockKey key, long bytes);

    /// Room was had for a block or an object, which is written now.
    ///
    /// @param after what comes before it in its chain; null for nothing, or where that is unknown
    /// @param replaces whether one of that key was here
    void onPut(Namespace namespace, BlockKey key, @Nullable BlockKey after, long bytes, boolean replaces);
}

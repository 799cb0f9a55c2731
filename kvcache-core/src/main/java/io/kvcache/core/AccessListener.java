package io.kvcache.core;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import org.jspecify.annotations.Nullable;

/// Is notified of the look-ups and puts of a store.
///
/// **Threads.** Called on the thread that uses the store, by any number at a time. It must return at once,
/// must not throw and must not use the store. An exception is logged once and otherwise ignored.
public interface AccessListener extends ChainListener {

    /// Purpose of a lookup of one block or object.
    enum LookupKind {
        /// To read it.
        GET,
        /// To learn whether it is here.
        LOOK
    }

    /// One block or object was asked for by its key.
    ///
    /// @param bytes of it, or -1 when it is not here; 0 where the store did not look
    void onAccess(LookupKind lookupKind, Namespace namespace, BlockKey key, long bytes);

    /// Room was reserved for a block or an object, and its writing begins.
    ///
    /// @param after its predecessor in the chain; null when it has none or when it is unknown
    /// @param replaces whether the store had a value under the key
    void onPut(Namespace namespace, BlockKey key, @Nullable BlockKey after, long bytes, boolean replaces);
}

package io.kvcache.core;

import io.kvcache.core.identity.BlockKey;
import java.util.List;

/// The objects of one namespace by the digests of their keys.
///
/// A store does not know the key of an object before it is asked for: the key lies behind the value. Who has to
/// count or forget objects that it never heard of, as after a restart, does so here.
///
/// **Threads.** Any.
public interface ObjectCatalog {

    /// One object.
    ///
    /// @param digest as [BlockKey#ofObject] makes it
    /// @param bytes of value and key together
    record Entry(BlockKey digest, long bytes) {}

    /// Those that are known while it looks, in any tier. Looks at every record of the store, some thousands a turn
    /// of its lock.
    List<Entry> list();

    /// Whether an object is here, in any tier. Pins and touches nothing.
    boolean contains(BlockKey digest);

    /// Forgets an object.
    ///
    /// @return whether it was here
    boolean drop(BlockKey digest);

    /// As [#drop], because the owner's quota is full: it counts, and events tell of it, as that.
    boolean dropForQuota(BlockKey digest);
}

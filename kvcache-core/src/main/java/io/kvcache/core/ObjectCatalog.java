package io.kvcache.core;

import io.kvcache.core.identity.BlockKey;
import java.util.List;

/// The objects of one namespace by the digests of their keys.
///
/// A store does not know the key of an object before a request for it: the key lies behind the value. Use the
/// catalog to count or drop objects whose keys you do not know, for example after a restart.
///
/// **Threads.** Any.
public interface ObjectCatalog {

    /// One object.
    ///
    /// @param digest as [BlockKey#ofObject] makes it
    /// @param bytes of value and key together
    record Entry(BlockKey digest, long bytes) {}

    /// Lists the objects known during the scan, in any tier. It reads every record of the store, a few thousand for
    /// each acquisition of the store's lock.
    List<Entry> list();

    /// Returns whether an object is here, in any tier. Does not count as a use.
    boolean contains(BlockKey digest);

    /// Forgets an object.
    ///
    /// @return whether it was here
    boolean drop(BlockKey digest);

    /// As [#drop], because the owner's quota is full: statistics and events report it as an eviction by quota.
    boolean dropForQuota(BlockKey digest);
}

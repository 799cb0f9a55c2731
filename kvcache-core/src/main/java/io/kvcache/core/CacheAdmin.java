package io.kvcache.core;

import io.kvcache.core.event.EventStream;
import io.kvcache.core.identity.Namespace;
import java.time.Duration;

/// Operator interface of a cache: durability, statistics, events, and the removal of a namespace.
///
/// **Threads.** Safe for any number of threads.
public interface CacheAdmin {

    /// Forgets all blocks and objects of a namespace; the namespace stays registered.
    ///
    /// @return the number of blocks and objects forgotten
    long drop(Namespace namespace);

    /// Makes durable everything that was sealed or dropped before.
    ///
    /// A flushed value survives a crash until it is evicted, replaced or dropped. Without a flush, a crash may lose
    /// what was sealed and bring back what was dropped.
    ///
    /// @param timeout the longest wait; an interrupt ends it
    /// @return whether all of it is durable; false of a store that keeps nothing on disk
    boolean flush(Duration timeout);

    /// Returns what the store holds and has done, at one moment.
    CacheStats stats();

    /// Returns the stream of what was stored and removed, in order.
    EventStream events();
}

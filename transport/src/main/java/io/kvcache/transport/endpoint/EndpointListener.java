package io.kvcache.transport.endpoint;

import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.MessageType;

/// Hears of clients' requests: look-ups of objects, each once, where it ends, and how long answers took.
///
/// A read is a look-up. A question alone is one of the objects that it does not find; what it finds counts when
/// it is read. Look-ups of other servers of the cluster are none.
///
/// **Threads.** Any, at the same time. It must return at once and must not throw.
@SuppressWarnings("exports") // Messages have names.
public interface EndpointListener {

    EndpointListener NONE = new EndpointListener() {};

    /// A client was given an object.
    ///
    /// @param key not to be changed
    default void onHit(Namespace namespace, byte[] key, long bytes) {}

    /// A client got the answer that an object is not here.
    ///
    /// @param key not to be changed
    /// @param late whether it is on disk, and did not come in time
    default void onMiss(Namespace namespace, byte[] key, boolean late) {}

    /// A request that finds, moves or drops blocks or objects has got its first reply, also one that says why not.
    ///
    /// @param nanos since its header was read
    default void onAnswered(MessageType type, long nanos) {}
}

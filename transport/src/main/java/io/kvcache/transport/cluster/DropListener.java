package io.kvcache.transport.cluster;

import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import org.jspecify.annotations.Nullable;

/// Hears at a server of what clients drop of the cluster's groups, so that servers learn of it which no client
/// reaches at that time.
///
/// **Threads.** Any.
@FunctionalInterface
public interface DropListener {

    /// A client is about to drop blocks here.
    ///
    /// @param groups a namespace of [groups][BlockGroup]
    /// @param from the first block that goes, with all below it; null for the whole namespace
    /// @param mark as the client has sent it
    /// @return to be run when this server's store has dropped them; it returns when the drop will not be forgotten
    ///     any more, and throws an [java.io.UncheckedIOException] when the disk for that fails
    Runnable onDrop(Namespace groups, @Nullable BlockKey from, DropMark mark);
}

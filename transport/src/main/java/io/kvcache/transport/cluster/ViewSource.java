package io.kvcache.transport.cluster;

import java.util.function.Consumer;

/// Where the present view comes from: in a server, from its membership.
///
/// **Threads.** Any.
public interface ViewSource {

    /// Returns the present view.
    ClusterView view();

    /// Tells each later view to a listener, one after another. The listener must not block.
    ///
    /// @return ends that
    Runnable listen(Consumer<ClusterView> listener);
}

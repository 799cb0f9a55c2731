package io.kvcache.server.keyspace;

import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import io.kvcache.transport.cluster.ViewSource;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

/// Views that the test tells, one after another.
///
/// **Threads.** One tells views; any may ask.
public final class SettableViews implements ViewSource {

    private final List<Consumer<ClusterView>> listeners = new CopyOnWriteArrayList<>();
    private volatile ClusterView view = new ClusterView("test", 0, List.of());

    /// A server whose values are at port 7379 of a host of its name.
    public static NodeInfo server(String name, NodeState state) {
        return server(name, state, 1, name + ".example:7379");
    }

    /// A server.
    ///
    /// @param valueAddress empty for a server without a listener for clients of Redis Cluster
    public static NodeInfo server(String name, NodeState state, long incarnation, String valueAddress) {
        return new NodeInfo(
                new ClusterNode(name, 1, "", ""), incarnation, state, name + ":7420", valueAddress, "test", 0);
    }

    /// Tells the next view.
    public void tell(NodeInfo... servers) {
        tell(false, servers);
    }

    /// Tells a view in which two sides of a partition have met.
    public void tellMerged(NodeInfo... servers) {
        tell(true, servers);
    }

    private void tell(boolean merged, NodeInfo... servers) {
        view = view.next(view.epoch() + 1, List.of(servers), merged);
        listeners.forEach(listener -> listener.accept(view));
    }

    @Override
    public ClusterView view() {
        return view;
    }

    @Override
    public Runnable listen(Consumer<ClusterView> listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }
}

package io.kvcache.transport.peer;

import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.ViewSource;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Consumer;

/// A view that a test changes.
final class SettableView implements ViewSource {

    private final List<Consumer<ClusterView>> listeners = new CopyOnWriteArrayList<>();
    private volatile ClusterView view = new ClusterView("test", 0, List.of());

    @Override
    public ClusterView view() {
        return view;
    }

    void set(ClusterView other) {
        view = other;
        listeners.forEach(listener -> listener.accept(other));
    }

    @Override
    public Runnable listen(Consumer<ClusterView> listener) {
        listeners.add(listener);
        return () -> listeners.remove(listener);
    }
}

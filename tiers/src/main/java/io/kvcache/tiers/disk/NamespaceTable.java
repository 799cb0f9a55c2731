package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;

/// Gives numbers to namespaces. A number may be used once both copies of the superblock know it.
final class NamespaceTable {

    private final Superblocks superblocks;
    private final Condition condition;
    private final DiskLogSink sink;
    private final Queue<Namespace> waiting = new ArrayDeque<>();

    NamespaceTable(Superblocks superblocks, Condition condition, DiskLogSink sink) {
        this.superblocks = superblocks;
        this.condition = condition;
        this.sink = sink;
    }

    /// Those that have a number, by it.
    List<Namespace> all() {
        return superblocks.current().namespaces();
    }

    /// How many numbers may be used.
    int size() {
        return superblocks.current().namespaces().size();
    }

    /// The number of a namespace, or -1.
    int number(Namespace namespace) {
        return superblocks.current().namespaces().indexOf(namespace);
    }

    Admission register(Namespace namespace) {
        if (!condition.writes()) {
            return Admission.REFUSED;
        }
        if (number(namespace) < 0 && superblocks.current().with(namespace) == null) {
            return Admission.FULL;
        }
        if (!waiting.contains(namespace)) {
            waiting.add(namespace);
        }
        return Admission.TAKEN;
    }

    void pump() {
        if (superblocks.busy() || waiting.isEmpty() || !condition.writes()) {
            return;
        }
        Namespace next = waiting.remove();
        int number = number(next);
        Superblock more = superblocks.current().with(next);
        if (number >= 0) {
            sink.registered(next, number);
        } else if (more != null) {
            superblocks.replace(more, () -> sink.registered(next, size() - 1));
        }
    }

    boolean idle() {
        return !superblocks.busy() && waiting.isEmpty();
    }
}

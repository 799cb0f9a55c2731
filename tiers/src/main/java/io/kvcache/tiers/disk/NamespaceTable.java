package io.kvcache.tiers.disk;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.tiers.disk.LogMount.SuperblockWriter;
import java.util.ArrayDeque;
import java.util.List;
import java.util.Queue;

/// Gives numbers to namespaces. A number may be used once both copies of the superblock know it.
final class NamespaceTable {

    private final SuperblockWriter superblockWriter;
    private final LogHealth logHealth;
    private final LogListener sink;
    private final Queue<Namespace> waiting = new ArrayDeque<>();

    NamespaceTable(SuperblockWriter superblockWriter, LogHealth logHealth, LogListener sink) {
        this.superblockWriter = superblockWriter;
        this.logHealth = logHealth;
        this.sink = sink;
    }

    /// Those that have a number, by it.
    List<Namespace> all() {
        return superblockWriter.current().namespaces();
    }

    /// How many numbers may be used.
    int size() {
        return superblockWriter.current().namespaces().size();
    }

    /// The number of a namespace, or -1.
    int idOf(Namespace namespace) {
        return superblockWriter.current().namespaces().indexOf(namespace);
    }

    SubmitResult register(Namespace namespace) {
        if (!logHealth.canWrite()) {
            return SubmitResult.REJECTED;
        }
        if (idOf(namespace) < 0 && superblockWriter.current().withNamespace(namespace) == null) {
            return SubmitResult.RETRY;
        }
        if (!waiting.contains(namespace)) {
            waiting.add(namespace);
        }
        return SubmitResult.ACCEPTED;
    }

    void pump() {
        if (superblockWriter.isBusy() || waiting.isEmpty() || !logHealth.canWrite()) {
            return;
        }
        Namespace next = waiting.remove();
        int number = idOf(next);
        Superblock more = superblockWriter.current().withNamespace(next);
        if (number >= 0) {
            sink.onNamespaceRegistered(next, number);
        } else if (more != null) {
            superblockWriter.replace(more, () -> sink.onNamespaceRegistered(next, size() - 1));
        }
    }

    boolean isIdle() {
        return !superblockWriter.isBusy() && waiting.isEmpty();
    }
}

package io.kvcache.cluster;

import java.util.ArrayDeque;
import java.util.Queue;
import org.jspecify.annotations.Nullable;

/// Runs tasks one after another, in the order in which they came, without a thread of its own.
///
/// Tasks are added under a lock that decides their order, and run after it was released. While another thread runs
/// them, [#run] returns at once. So a task may add further ones, and may wait for a lock that another caller holds.
///
/// **Threads.** Any.
final class OrderedDelivery {

    private static final System.Logger LOG = System.getLogger(OrderedDelivery.class.getName());

    private final Queue<Runnable> tasks = new ArrayDeque<>();
    private boolean running;

    /// Puts a task behind all earlier ones, for the next [#run].
    void add(Runnable task) {
        synchronized (tasks) {
            tasks.add(task);
        }
    }

    /// Runs all tasks, unless another thread does. One that fails is logged, as a bug.
    void run() {
        synchronized (tasks) {
            if (running) {
                return;
            }
            running = true;
        }
        for (Runnable next = next(); next != null; next = next()) {
            try {
                next.run();
            } catch (RuntimeException bug) {
                LOG.log(System.Logger.Level.ERROR, "a listener of the cluster's members failed", bug);
            }
        }
    }

    private @Nullable Runnable next() {
        synchronized (tasks) {
            Runnable next = tasks.poll();
            running = next != null;
            return next;
        }
    }
}

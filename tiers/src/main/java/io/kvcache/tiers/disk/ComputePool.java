package io.kvcache.tiers.disk;

import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Checks, codes and decodes blocks, large ones beside the log's thread.
///
/// A thread checks some 20 GB/s, which is no more than a few disks read. So one block is checked while the
/// log's thread hands on the next; and when there is nothing to read, the log's thread helps.
///
/// **Threads.** The log's, but for the executor's that compute.
final class ComputePool {

    /// Below that, handing it over costs as much as computing it.
    private static final int SMALL_BYTES = 256 << 10;

    private final @Nullable Executor executor;
    private final Runnable wake;
    private final Queue<PendingComputation> pending = new ArrayDeque<>();

    /// @param beside runs computations; null when the log's thread does all
    /// @param wake ends the wait of the log's thread
    ComputePool(@Nullable Executor beside, Runnable wake) {
        this.executor = beside;
        this.wake = wake;
    }

    /// What is done with a block.
    interface Computation {

        /// Does it, on any thread. When it throws, [#finish] finds what it left.
        void compute();

        /// Follows up, on the log's thread.
        void finish();
    }

    /// @param bytes that it takes a look at
    void submit(int bytes, Computation computation) {
        if (executor == null || bytes < SMALL_BYTES) {
            computation.compute();
            computation.finish();
            return;
        }
        PendingComputation next = new PendingComputation(computation, wake);
        pending.add(next);
        executor.execute(next);
    }

    /// Finishes those that are computed.
    ///
    /// @param help whether to compute one of the others here and now
    /// @return how many were finished
    int pump(boolean help) {
        if (help) {
            pending.stream().filter(PendingComputation::claim).findFirst().ifPresent(PendingComputation::compute);
        }
        int ended = 0;
        for (Iterator<PendingComputation> each = pending.iterator(); each.hasNext(); ) {
            PendingComputation next = each.next();
            if (next.done) {
                each.remove();
                next.computation.finish();
                ended++;
            }
        }
        return ended;
    }

    /// A reading of the system's clock, or 0 where the log's thread does all: a simulation's time is not the system's.
    long nanos() {
        return executor == null ? 0 : System.nanoTime();
    }

    boolean isIdle() {
        return pending.isEmpty();
    }

    private static final class PendingComputation implements Runnable {
        private final Computation computation;
        private final Runnable wake;
        private final AtomicBoolean claimed = new AtomicBoolean();
        private volatile boolean done;

        PendingComputation(Computation computation, Runnable wake) {
            this.computation = computation;
            this.wake = wake;
        }

        boolean claim() {
            return claimed.compareAndSet(false, true);
        }

        void compute() {
            try {
                computation.compute();
            } finally {
                done = true;
            }
        }

        @Override
        public void run() {
            if (claim()) {
                compute();
                wake.run();
            }
        }
    }
}

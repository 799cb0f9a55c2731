package io.kvcache.tiers.disk;

import java.util.ArrayDeque;
import java.util.Iterator;
import java.util.Queue;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// Compares what was read with its checksum, large blocks beside the log's thread.
///
/// A thread checks some 20 GB/s, which is no more than a few disks read. So one block is checked while the log's thread
/// hands on the next; and when there is nothing to read, the log's thread helps.
///
/// **Threads.** The log's, but for the executor's that check.
final class Checks {

    /// Below that, handing it over costs as much as checking it.
    private static final int SMALL_BYTES = 256 << 10;

    private final @Nullable Executor beside;
    private final Runnable wake;
    private final Queue<Check> open = new ArrayDeque<>();

    /// @param beside runs checks; null when the log's thread does all
    /// @param wake ends the wait of the log's thread
    Checks(@Nullable Executor beside, Runnable wake) {
        this.beside = beside;
        this.wake = wake;
    }

    /// Hears, on the log's thread, whether the checksum is right.
    @FunctionalInterface
    interface Checked {
        void checked(boolean right);
    }

    /// @param pieces stay as they are until `then` was told
    void check(Pieces pieces, int checksum, Checked then) {
        if (beside == null || pieces.bytes() < SMALL_BYTES) {
            then.checked(pieces.checksum() == checksum);
            return;
        }
        Check check = new Check(pieces, checksum, then, wake);
        open.add(check);
        beside.execute(check);
    }

    /// Tells of those that are done.
    ///
    /// @param help whether to check one of the others here and now
    /// @return how many were done
    int pump(boolean help) {
        if (help) {
            open.stream().filter(Check::claim).findFirst().ifPresent(Check::compute);
        }
        int ended = 0;
        for (Iterator<Check> each = open.iterator(); each.hasNext(); ) {
            Check check = each.next();
            if (check.done) {
                each.remove();
                check.then.checked(check.right);
                ended++;
            }
        }
        return ended;
    }

    boolean idle() {
        return open.isEmpty();
    }

    private static final class Check implements Runnable {
        private final Pieces pieces;
        private final int checksum;
        private final Checked then;
        private final Runnable wake;
        private final AtomicBoolean claimed = new AtomicBoolean();
        private boolean right;
        private volatile boolean done;

        Check(Pieces pieces, int checksum, Checked then, Runnable wake) {
            this.pieces = pieces;
            this.checksum = checksum;
            this.then = then;
            this.wake = wake;
        }

        boolean claim() {
            return claimed.compareAndSet(false, true);
        }

        void compute() {
            try {
                right = pieces.checksum() == checksum;
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

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
final class ChecksumPool {

    /// Below that, handing it over costs as much as checking it.
    private static final int SMALL_BYTES = 256 << 10;

    private final @Nullable Executor executor;
    private final Runnable wake;
    private final Queue<ChecksumTask> pending = new ArrayDeque<>();

    /// @param beside runs checks; null when the log's thread does all
    /// @param wake ends the wait of the log's thread
    ChecksumPool(@Nullable Executor beside, Runnable wake) {
        this.executor = beside;
        this.wake = wake;
    }

    /// Hears, on the log's thread, whether the checksum is right.
    @FunctionalInterface
    interface Callback {
        void onChecked(boolean right);
    }

    /// @param bufferList stay as they are until `then` was told
    void check(BufferList bufferList, int checksum, Callback then) {
        if (executor == null || bufferList.bytes() < SMALL_BYTES) {
            then.onChecked(bufferList.checksum() == checksum);
            return;
        }
        ChecksumTask checksumTask = new ChecksumTask(bufferList, checksum, then, wake);
        pending.add(checksumTask);
        executor.execute(checksumTask);
    }

    /// Tells of those that are done.
    ///
    /// @param help whether to check one of the others here and now
    /// @return how many were done
    int pump(boolean help) {
        if (help) {
            pending.stream().filter(ChecksumTask::claim).findFirst().ifPresent(ChecksumTask::compute);
        }
        int ended = 0;
        for (Iterator<ChecksumTask> each = pending.iterator(); each.hasNext(); ) {
            ChecksumTask checksumTask = each.next();
            if (checksumTask.done) {
                each.remove();
                checksumTask.callback.onChecked(checksumTask.matches);
                ended++;
            }
        }
        return ended;
    }

    boolean isIdle() {
        return pending.isEmpty();
    }

    private static final class ChecksumTask implements Runnable {
        private final BufferList bufferList;
        private final int checksum;
        private final Callback callback;
        private final Runnable wake;
        private final AtomicBoolean claimed = new AtomicBoolean();
        private boolean matches;
        private volatile boolean done;

        ChecksumTask(BufferList bufferList, int checksum, Callback then, Runnable wake) {
            this.bufferList = bufferList;
            this.checksum = checksum;
            this.callback = then;
            this.wake = wake;
        }

        boolean claim() {
            return claimed.compareAndSet(false, true);
        }

        void compute() {
            try {
                matches = bufferList.checksum() == checksum;
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

package io.kvcache.transport.sim;

import java.util.ArrayDeque;
import java.util.Deque;

/// What happened in a run lately: for whoever has to understand a seed that failed, which seldom fails the
/// same way again.
///
/// **Threads.** Any.
final class RunJournal {

    private static final int KEPT = 200;

    private final long start = System.nanoTime();
    private final Deque<String> lines = new ArrayDeque<>();
    private long left;

    /// Notes something, with the moment and the thread.
    void note(String what) {
        double millis = (System.nanoTime() - start) / 1e6;
        String line = "%9.3f ms %s: %s".formatted(millis, Thread.currentThread().getName(), what);
        synchronized (this) {
            if (lines.size() == KEPT) {
                lines.removeFirst();
                left++;
            }
            lines.addLast(line);
        }
    }

    @Override
    public synchronized String toString() {
        return (left == 0 ? "" : left + " before, then\n") + String.join("\n", lines);
    }
}

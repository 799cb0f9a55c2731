package io.kvcache.transport.endpoint;

import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/// The threads of what carries an endpoint's bytes, so that its closing can wait for them: until they have
/// ended they may use the cache.
///
/// **Threads.** Any.
public final class EndpointThreads {

    private static final System.Logger LOG = System.getLogger(EndpointThreads.class.getName());

    /// Far longer than any thread takes to notice that its connection is closed.
    static final long MAX_WAIT_NANOS = TimeUnit.SECONDS.toNanos(5);

    /// Between two looks at a thread that is about to start.
    private static final Duration POLL_INTERVAL = Duration.ofMillis(1);

    private final Set<Thread> running = ConcurrentHashMap.newKeySet();

    /// Runs some work on a platform thread of its own.
    public Thread start(String name, Runnable work) {
        Thread thread = Thread.ofPlatform().daemon().name(name).unstarted(() -> {
            try {
                work.run();
            } finally {
                running.remove(Thread.currentThread());
            }
        });
        running.add(thread);
        boolean started = false;
        try {
            thread.start();
            started = true;
        } finally {
            if (!started) {
                running.remove(thread);
            }
        }
        return thread;
    }

    /// Waits until all have ended, those too that the others start meanwhile, but not for longer than five
    /// seconds. Wakes who sleeps, leaves out who calls, and stops at an interrupt.
    ///
    /// @return whether all have ended
    public boolean await() {
        long end = System.nanoTime() + MAX_WAIT_NANOS;
        try {
            for (Thread next = anyRunning(); next != null; next = anyRunning()) {
                LockSupport.unpark(next);
                long left = end - System.nanoTime();
                if (left > 0 && next.getState() == Thread.State.NEW) {
                    Thread.sleep(POLL_INTERVAL); // Whoever starts it is about to.
                    continue;
                }
                if (left <= 0 || !next.join(Duration.ofNanos(left))) {
                    LOG.log(System.Logger.Level.WARNING, next.getName() + " does not end");
                    return false;
                }
                running.remove(next);
            }
            return true;
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    private @Nullable Thread anyRunning() {
        return running.stream()
                .filter(each -> !each.equals(Thread.currentThread()))
                .findFirst()
                .orElse(null);
    }
}

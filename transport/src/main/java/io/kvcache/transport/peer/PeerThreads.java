package io.kvcache.transport.peer;

import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;

/// What runs beside the callers of a [PeeredKvCache], and by which clock.
///
/// @param fetchExecutor brings what is missing, so many questions at a time as it has threads
/// @param connectExecutor never lets one peer wait for another
/// @param replicationExecutor runs one thing, for as long as the cache is open
record PeerThreads(
        ExecutorService fetchExecutor,
        ExecutorService connectExecutor,
        ExecutorService replicationExecutor,
        PeerClock clock) {

    private static final long CLOSE_SECONDS = 10;

    /// Threads of this process.
    static PeerThreads start(PeerOptions options) {
        return new PeerThreads(
                Executors.newFixedThreadPool(options.fetches(), daemons("fetch")),
                Executors.newCachedThreadPool(daemons("connect")),
                Executors.newCachedThreadPool(daemons("give")),
                PeerClock.MACHINE);
    }

    private static ThreadFactory daemons(String name) {
        return Thread.ofPlatform()
                .daemon()
                .name("kvcache-peer-" + name + "-", 0)
                .factory();
    }

    /// Interrupts what goes on, and waits for the end of what may use the store.
    ///
    /// @return what never began
    List<Runnable> stop() {
        replicationExecutor.shutdownNow();
        connectExecutor.shutdownNow();
        List<Runnable> never = fetchExecutor.shutdownNow();
        try {
            var _ = fetchExecutor.awaitTermination(CLOSE_SECONDS, TimeUnit.SECONDS);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
        return never;
    }
}

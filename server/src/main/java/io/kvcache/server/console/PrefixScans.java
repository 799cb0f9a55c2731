package io.kvcache.server.console;

import io.kvcache.core.spi.Clock;
import io.kvcache.server.http.Viewer;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/// Scans of the whole store for clients, which take a while and a core each. There are few at a time, one for each
/// tenant, and tenants leave one place to administrators. What a scan has found answers the same question for a second.
///
/// **Threads.** Any. Each scan has a virtual thread of its own. One that fails ends its question with what was thrown,
/// which is logged.
public final class PrefixScans {

    private static final System.Logger LOG = System.getLogger(PrefixScans.class.getName());

    /// At one time.
    static final int MAX_SCANS = 3;

    private static final int MAX_SCANS_OF_TENANTS = MAX_SCANS - 1;

    /// An answer has up to a thousand nodes.
    private static final int MAX_KEPT = 16;

    private static final long KEPT_NANOS = TimeUnit.SECONDS.toNanos(1);

    private final Clock clock;
    private final Map<Key, Scan> scans = new LinkedHashMap<>();
    private long version;

    public PrefixScans(Clock clock) {
        this.clock = clock;
    }

    /// @param version of the store, as far as this knows of changes
    private record Key(Object question, long version) {}

    private static final class Scan {

        private final Viewer viewer;
        private final CompletableFuture<Object> answer = new CompletableFuture<>();
        private volatile long endNanos;

        Scan(Viewer viewer) {
            this.viewer = viewer;
        }

        boolean isRunning() {
            return !answer.isDone();
        }
    }

    /// Answers a question: by a scan of now or of a moment ago, or by a new one.
    ///
    /// @param question has the same answer for all who may ask it
    /// @param scan finds the answer
    /// @return the answer when it is there, on another thread; null when the client may not scan now
    @Nullable
    CompletableFuture<Object> ask(Viewer viewer, Object question, Supplier<Object> scan) {
        Scan started;
        Key key;
        synchronized (this) {
            key = new Key(question, version);
            long now = clock.nanos();
            scans.values().removeIf(each -> !each.isRunning() && now - each.endNanos >= KEPT_NANOS);
            Scan known = scans.get(key);
            if (known != null) {
                return known.answer;
            }
            if (!mayScan(viewer)) {
                return null;
            }
            forgetOldest();
            started = new Scan(viewer);
            scans.put(key, started);
        }
        Thread.ofVirtual().name("kvcache-prefixes").start(() -> run(key, started, scan));
        return started.answer;
    }

    private boolean mayScan(Viewer viewer) {
        List<Viewer> running = scans.values().stream()
                .filter(Scan::isRunning)
                .map(each -> each.viewer)
                .toList();
        if (viewer.administrator() || running.size() >= MAX_SCANS) {
            return running.size() < MAX_SCANS;
        }
        List<Viewer> tenants =
                running.stream().filter(each -> !each.administrator()).toList();
        return tenants.size() < MAX_SCANS_OF_TENANTS
                && tenants.stream().noneMatch(each -> each.tenant().equals(viewer.tenant()));
    }

    private void forgetOldest() {
        if (scans.size() >= MAX_KEPT) {
            scans.entrySet().stream()
                    .filter(each -> !each.getValue().isRunning())
                    .map(Map.Entry::getKey)
                    .findFirst()
                    .ifPresent(scans::remove);
        }
    }

    private void run(Key key, Scan scan, Supplier<Object> question) {
        try {
            Object answer = question.get();
            scan.endNanos = clock.nanos();
            scan.answer.complete(answer);
        } catch (RuntimeException | Error failed) {
            synchronized (this) {
                scans.remove(key, scan);
            }
            LOG.log(System.Logger.Level.ERROR, "a scan of the store failed, a bug", failed);
            scan.answer.completeExceptionally(failed);
        }
    }

    /// The store is not what scans until now have found.
    synchronized void onChanged() {
        version++;
    }
}

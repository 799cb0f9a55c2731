package io.kvcache.server.console;

import io.kvcache.core.CacheStats;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.HttpStream;
import io.kvcache.server.http.Json;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.http.Viewer;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/// Sends the load of the last two seconds to those who follow it, as server-sent events. Does nothing while
/// there are none: the first sample comes four seconds after the first follower.
///
/// **Threads.** Any; [#tick] one at a time.
public final class LiveFeed {

    /// Milliseconds between two calls of [#tick].
    public static final int INTERVAL_MILLIS = 2000;

    static final int MAX_FOLLOWERS = 50;

    /// Of these, by one tenant without administrator rights.
    static final int MAX_OF_A_TENANT = 10;

    /// Of these, kept for administrators.
    private static final int ADMINISTRATORS_ALONE = 10;

    /// Stands for the whole server.
    private static final String SERVER = "";

    private final ConsoleSources sources;
    private final Set<Follower> followers = ConcurrentHashMap.newKeySet();
    private Map<String, LoadTotals> last = Map.of();

    public LiveFeed(ConsoleSources sources) {
        this.sources = sources;
    }

    /// The handler of a request to follow.
    ///
    /// @param tenant null for the whole server
    HttpRequestHandler follow(Viewer viewer, @Nullable String tenant) {
        return new Follower(viewer, tenant == null ? SERVER : tenant);
    }

    /// Sends each follower its sample.
    public void tick() {
        if (followers.isEmpty()) {
            last = Map.of();
            return;
        }
        CacheStats stats = sources.cache().stats();
        long at = TimeUnit.MILLISECONDS.toSeconds(sources.wall().millis());
        Map<String, LoadTotals> now = new HashMap<>();
        Map<String, String> texts = new HashMap<>();
        for (Follower each : followers) {
            LoadTotals totals = now.computeIfAbsent(
                    each.scope,
                    scope -> scope.equals(SERVER)
                            ? LoadTotals.ofServer(sources, stats)
                            : LoadTotals.ofTenant(sources, stats, scope));
            LoadTotals before = last.get(each.scope);
            if (before != null) {
                each.send(texts.computeIfAbsent(
                        each.scope, _ -> "event: sample\ndata: " + Json.text(totals.since(before, at)) + "\n"));
            }
        }
        last = now;
    }

    /// A client that follows. One that does not read misses samples.
    private final class Follower implements HttpRequestHandler.BodylessHandler {

        private final Viewer viewer;
        private final String scope;
        private volatile @Nullable HttpStream stream;

        Follower(Viewer viewer, String scope) {
            this.viewer = viewer;
            this.scope = scope;
        }

        private boolean mayFollow() {
            if (viewer.administrator()) {
                return followers.size() < MAX_FOLLOWERS;
            }
            long own = followers.stream()
                    .filter(each -> each.viewer.tenant().equals(viewer.tenant()))
                    .count();
            return followers.size() < MAX_FOLLOWERS - ADMINISTRATORS_ALONE && own < MAX_OF_A_TENANT;
        }

        @Override
        public void respond(HttpResponder out) {
            synchronized (followers) {
                if (!mayFollow()) {
                    out.sendProblem(ProblemDetails.withType(
                            HttpResponseStatus.SERVICE_UNAVAILABLE,
                            "busy",
                            "the load has as many followers as it may, " + MAX_FOLLOWERS + ", or " + MAX_OF_A_TENANT
                                    + " of one tenant; /v1/history has it too"));
                    return;
                }
                followers.add(this);
            }
            HttpStream begun = out.openStream("text/event-stream");
            begun.write("retry: 2000\n\n");
            begun.flush();
            stream = begun;
        }

        void send(String text) {
            HttpStream to = stream;
            if (to != null) {
                to.runOnLoop(() -> {
                    if (to.isWritable()) {
                        to.write(text);
                        to.flush();
                    }
                });
            }
        }

        @Override
        public void close() {
            followers.remove(this);
        }
    }
}

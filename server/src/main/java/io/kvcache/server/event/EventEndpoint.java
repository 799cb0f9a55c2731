package io.kvcache.server.event;

import io.kvcache.core.engine.EngineValueKey;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.event.EventEndpoint.EventSubscription.EventFilter;
import io.kvcache.server.event.EventEndpoint.EventSubscription.EventId;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.HttpStream;
import io.kvcache.server.http.Json;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.http.Viewer;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.util.Collections;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/// `/v1/events`: what is stored and removed, as it happens.
///
/// A client that names the last event it has seen, by `Last-Event-ID` as browsers do it or by the
/// query `after`, gets what came since; with the query `from=oldest` it begins with the oldest that
/// is kept, with `from=snapshot` with all that is stored now. The query `namespace` leaves all
/// others out.
public final class EventEndpoint implements HttpEndpoint {

    private static final String PATH = "/v1/events";
    private static final List<String> START_POSITIONS = List.of("now", "oldest", "snapshot");
    private static final String ALL_TENANTS = "*";
    private static final String LAST_EVENT_ID = "Last-Event-ID";

    private final EventFeed feed;
    private final Viewer.Rules rules;

    /// @param rules who sees the events of which tenants
    public EventEndpoint(EventFeed feed, Viewer.Rules rules) {
        this.feed = feed;
        this.rules = rules;
    }

    @Override
    public List<String> paths() {
        return List.of(PATH);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (!path.equals(PATH)) {
            return null;
        }
        if (!request.method().name().equals("GET")) {
            return HttpResponder.methodNotAllowed(request, "GET");
        }
        QueryStringDecoder query = new QueryStringDecoder(request.uri());
        String after = request.headers().get(LAST_EVENT_ID, firstParameter(query, "after"));
        String from = firstParameter(query, "from");
        if (from != null && !START_POSITIONS.contains(from)) {
            return new ProblemDetails(
                            HttpResponseStatus.BAD_REQUEST,
                            "from is '" + from + "'; it takes " + String.join(", ", START_POSITIONS))
                    .toHandler();
        }
        String wanted = firstParameter(query, "tenant");
        boolean all = ALL_TENANTS.equals(wanted);
        Viewer viewer = rules.viewer(tenant);
        if (wanted != null && (all ? !viewer.administrator() : !viewer.sees(wanted))) {
            return Viewer.administratorsOnly(
                    "tenant is '" + wanted + "', and tenant " + tenant + " sees its own events only");
        }
        EventFilter filter =
                new EventFilter(all ? null : wanted == null ? tenant : wanted, firstParameter(query, "namespace"));
        try {
            EventId last = after == null ? parseStart(from) : EventId.parse(after);
            return new EventSubscription(feed, last, tenant, filter);
        } catch (IllegalArgumentException mistake) {
            return new ProblemDetails(
                            HttpResponseStatus.BAD_REQUEST,
                            LAST_EVENT_ID + " is '" + after + "'; " + mistake.getMessage())
                    .toHandler();
        }
    }

    /// @return null for a snapshot first
    private @Nullable EventId parseStart(@Nullable String from) {
        if ("snapshot".equals(from)) {
            return null;
        }
        long next =
                "oldest".equals(from) ? feed.oldestSequence() : feed.events().nextSequence();
        return new EventId(feed.epoch(), next - 1);
    }

    private static @Nullable String firstParameter(QueryStringDecoder query, String name) {
        List<String> given = query.parameters().get(name);
        return given == null ? null : given.getFirst();
    }

    /// One client that follows.
    ///
    /// It is handed what its socket takes and no more, so what it has not read is in no memory but the
    /// store's history. Once it has lagged behind that it is told so. One that reads nothing at all is
    /// closed as every slow reader is. A client that begins with a snapshot is handed that first, likewise.
    ///
    /// **Threads.** The connection's loop, but for [#wake] and [#end].
    static final class EventSubscription implements HttpRequestHandler.BodylessHandler, EventFeed.Subscriber {

        /// Some tens of kilobytes of text.
        private static final int MAX_BATCH = 256;

        /// Wakes without an event, of 20 ms each, after which a sign of life is sent: ten seconds.
        private static final int KEEPALIVE_WAKES = 500;

        private final EventFeed feed;
        private final String tenant;
        private final EventFilter filter;
        private final @Nullable EventId last;
        private final AtomicBoolean wakePending = new AtomicBoolean();
        private volatile @Nullable HttpStream stream;
        private volatile long next;
        private int idleWakes;
        private volatile boolean sendingSnapshot;
        private Iterator<CacheEvent> unsentSnapshot = Collections.emptyIterator();
        private final AtomicBoolean holdsSnapshot = new AtomicBoolean();

        /// Which events are wanted.
        ///
        /// @param tenant whose; null for those of all tenants, which name theirs
        /// @param namespace the model of the only namespace wanted, or null
        record EventFilter(
                @Nullable String tenant, @Nullable String namespace) {

            boolean isVisible(Namespace of) {
                return (tenant == null || of.owner().equals(tenant))
                        && (namespace == null || of.model().equals(namespace));
            }
        }

        /// @param last the event before the first wanted one; null for a snapshot first
        /// @param tenant that follows
        EventSubscription(EventFeed feed, @Nullable EventId last, String tenant, EventFilter filter) {
            this.feed = feed;
            this.last = last;
            this.tenant = tenant;
            this.filter = filter;
        }

        @Override
        public String tenant() {
            return tenant;
        }

        @Override
        public void respond(HttpResponder out) {
            if (!feed.add(this)) {
                out.sendProblem(new ProblemDetails(
                        HttpResponseStatus.SERVICE_UNAVAILABLE,
                        "tenant " + tenant + " follows events as often as it may: of " + feed.maxSubscribers()
                                + " followers a tenant may have as many as are free; end another one first"));
                return;
            }
            if (last == null) {
                startWithSnapshot(out);
            } else {
                resumeAfter(last, openStream(out));
            }
        }

        private static HttpStream openStream(HttpResponder out) {
            HttpStream begun = out.openStream("text/event-stream");
            begun.write("retry: 1000\n\n");
            return begun;
        }

        private void resumeAfter(EventId seen, HttpStream begun) {
            boolean known = seen.epoch().equals(feed.epoch());
            next = known ? seen.sequence() + 1 : 0;
            if (!known) {
                next = feed.oldestSequence();
                begun.write(SseEncoder.gap(id(next - 1), seen, "restart"));
            }
            stream = begun;
            pump(begun);
        }

        private void startWithSnapshot(HttpResponder out) {
            String refusal = feed.tryAcquireSnapshot();
            if (refusal != null) {
                feed.remove(this);
                out.sendProblem(new ProblemDetails(HttpResponseStatus.SERVICE_UNAVAILABLE, refusal));
                return;
            }
            holdsSnapshot.set(true);
            HttpStream begun = openStream(out);
            begun.flush();
            Thread.ofVirtual().name("kvcache-snapshot").start(() -> {
                StoreSnapshot snapshot = feed.events().snapshot();
                List<CacheEvent> shown = snapshot.stored().stream()
                        .filter(event -> filter.isVisible(feed.namespace(event.namespaceId())))
                        .toList();
                begun.runOnLoop(() -> startSnapshot(begun, shown, snapshot.nextSequence()));
            });
        }

        private void startSnapshot(HttpStream to, List<CacheEvent> stored, long nextSequence) {
            to.write(SseEncoder.snapshotBegin(stored.size()));
            next = nextSequence;
            unsentSnapshot = stored.iterator();
            sendingSnapshot = true;
            stream = to;
            pump(to);
        }

        /// Hands over as much of the snapshot as the socket takes; answers whether all of it is told.
        private boolean sendSnapshot(HttpStream to) {
            while (unsentSnapshot.hasNext() && to.isWritable()) {
                StringBuilder text = new StringBuilder();
                for (int left = MAX_BATCH; left > 0 && unsentSnapshot.hasNext(); left--) {
                    CacheEvent event = unsentSnapshot.next();
                    text.append(SseEncoder.snapshotEntry(
                            event, feed.namespace(event.namespaceId()), filter.tenant == null));
                }
                to.write(text.toString());
            }
            if (unsentSnapshot.hasNext()) {
                return false;
            }
            sendingSnapshot = false;
            unsentSnapshot = Collections.emptyIterator();
            releaseSnapshot();
            to.write(SseEncoder.snapshotEnd(id(next - 1)));
            return true;
        }

        private void releaseSnapshot() {
            if (holdsSnapshot.compareAndSet(true, false)) {
                feed.releaseSnapshot();
            }
        }

        private EventId id(long sequence) {
            return new EventId(feed.epoch(), sequence);
        }

        @Override
        public void wake(long upTo) {
            HttpStream to = stream;
            if (to == null) {
                return;
            }
            if (sendingSnapshot || next < upTo) {
                if (wakePending.compareAndSet(false, true)) {
                    to.runOnLoop(() -> pump(to));
                }
            } else if (++idleWakes % KEEPALIVE_WAKES == 0) {
                to.runOnLoop(() -> {
                    to.write(":\n\n");
                    to.flush();
                });
            }
        }

        private void pump(HttpStream to) {
            wakePending.set(false);
            boolean more = !sendingSnapshot || sendSnapshot(to);
            while (more && to.isWritable()) {
                EventBatch batch = feed.events().since(next, MAX_BATCH);
                if (batch.hasGap()) {
                    long oldest = batch.events().getFirst().sequence();
                    to.write(SseEncoder.gap(id(oldest - 1), id(next - 1), "history"));
                }
                StringBuilder text = new StringBuilder();
                for (CacheEvent event : batch.events()) {
                    Namespace namespace = feed.namespace(event.namespaceId());
                    if (filter.isVisible(namespace)) {
                        text.append(SseEncoder.event(event, namespace, filter.tenant == null, id(event.sequence())));
                    }
                }
                to.write(text.toString());
                next = batch.nextSequence();
                more = batch.events().size() == MAX_BATCH;
            }
            to.flush();
        }

        @Override
        public void end() {
            HttpStream to = stream;
            if (to != null) {
                to.runOnLoop(() -> {
                    feed.remove(this);
                    to.end();
                });
            }
        }

        @Override
        public void close() {
            unsentSnapshot = Collections.emptyIterator();
            releaseSnapshot();
            feed.remove(this);
        }

        /// One event as a message of an event stream: `id`, `event` and `data`, which is a line of JSON.
        private static final class SseEncoder {

            private SseEncoder() {}

            /// @param named whether the event says whose it is
            static String event(CacheEvent event, Namespace namespace, boolean named, EventId id) {
                Map<String, Object> data = new LinkedHashMap<>();
                data.put("sequence", event.sequence());
                data.putAll(data(event, namespace, named));
                return message(id, event.kind().isAddition() ? "stored" : "removed", data);
            }

            private static Map<String, Object> data(CacheEvent event, Namespace namespace, boolean named) {
                Map<String, Object> data = new LinkedHashMap<>();
                data.put("tier", lowerCaseName(event.tier()));
                if (!event.kind().isAddition()) {
                    data.put("cause", lowerCaseName(event.kind()));
                }
                data.put("namespace", namespace.model());
                if (named) {
                    data.put("tenant", namespace.owner());
                }
                data.put("key", new BlockKey(event.keyHi(), event.keyLo()).toString());
                if (namespace.parts().isEmpty()) {
                    data.put("object", true);
                } else {
                    data.put("depth", event.depth());
                }
                if (event.depth() > 0) {
                    data.put("parent", new BlockKey(event.parentHi(), event.parentLo()).toString());
                }
                if (event.engineHash() != 0) {
                    long hash = event.engineHash(); // as text, since JavaScript rounds large numbers
                    data.put(
                            "engineHash",
                            EngineValueKey.isSigned(namespace) ? Long.toString(hash) : Long.toUnsignedString(hash));
                }
                return data;
            }

            /// Something that is stored, as a snapshot has it: it has no number.
            static String snapshotEntry(CacheEvent event, Namespace namespace, boolean named) {
                Map<String, Object> data = data(event, namespace, named);
                return "event: stored\ndata: " + Json.text(data) + "\n";
            }

            /// Says that a snapshot begins.
            static String snapshotBegin(int entries) {
                return "event: snapshot\ndata: " + Json.text(Map.of("entries", entries)) + "\n";
            }

            /// Says that a snapshot is complete; the events after this one are those that are not in it.
            static String snapshotEnd(EventId last) {
                return message(last, "live", Map.of("sequence", last.sequence()));
            }

            /// Says that events are missing before the next one.
            ///
            /// @param why `history` when they are no longer kept, `restart` when they were those of an
            ///     earlier run
            static String gap(EventId before, EventId asked, String why) {
                Map<String, Object> data = new LinkedHashMap<>();
                data.put("reason", why);
                data.put("asked", asked.toString());
                data.put("oldest", before.sequence() + 1);
                return message(before, "gap", data);
            }

            private static String message(EventId id, String name, Map<String, Object> data) {
                return "id: " + id + "\nevent: " + name + "\ndata: " + Json.text(data) + "\n";
            }

            private static String lowerCaseName(Enum<?> constant) {
                return constant.name().toLowerCase(Locale.ROOT);
            }
        }

        /// Names an event: the run of the server and the number within it, as `m3k2x1-1234`.
        ///
        /// @param sequence -1 before the first event
        record EventId(String epoch, long sequence) {

            private static final Pattern FORMAT = Pattern.compile("(\\w{1,32})-(-1|\\d{1,18})");

            /// Reads one.
            ///
            /// @throws IllegalArgumentException when the text is not an id
            static EventId parse(String text) {
                Matcher form = FORMAT.matcher(text);
                if (!form.matches()) {
                    throw new IllegalArgumentException("it takes the id of an event that came before");
                }
                return new EventId(form.group(1), Long.parseLong(form.group(2)));
            }

            @Override
            public String toString() {
                return epoch + "-" + sequence;
            }
        }
    }
}

package io.kvcache.server.event;

import io.kvcache.server.event.EventSubscription.EventFilter;
import io.kvcache.server.event.EventSubscription.EventId;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.http.Viewer;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.util.List;
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
}

package io.kvcache.server.event;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.Exchange;
import io.kvcache.server.http.HttpReplies;
import io.kvcache.server.http.HttpStream;
import io.kvcache.server.http.Problem;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// One client that follows.
///
/// It is handed what its socket takes and no more, so what it has not read is in no memory but the
/// store's history. Once it has lagged behind that it is told so. One that reads nothing at all is
/// closed as every slow reader is.
///
/// **Threads.** The connection's loop, but for [#wake] and [#end].
final class EventSubscription implements Exchange.Plain, EventFeed.Follower {

    /// Some tens of kilobytes of text.
    private static final int AT_ONCE = 256;

    /// Wakes without an event, of 20 ms each, after which a sign of life is sent: ten seconds.
    private static final int QUIET = 500;

    private final EventFeed feed;
    private final String tenant;
    private final @Nullable String only;
    private final EventId last;
    private final AtomicBoolean asked = new AtomicBoolean();
    private volatile @Nullable HttpStream stream;
    private volatile long next;
    private int quiet;

    /// @param last the event before the first wanted one
    /// @param only the model of the only namespace wanted, or null
    EventSubscription(EventFeed feed, EventId last, String tenant, @Nullable String only) {
        this.feed = feed;
        this.last = last;
        this.tenant = tenant;
        this.only = only;
    }

    @Override
    public void answer(HttpReplies out) {
        if (!feed.add(this)) {
            out.problem(new Problem(
                    HttpResponseStatus.SERVICE_UNAVAILABLE,
                    "there are " + EventFeed.MOST + " followers of events, as many as may be"));
            return;
        }
        HttpStream begun = out.stream("text/event-stream");
        begun.write("retry: 1000\n\n");
        boolean known = last.epoch().equals(feed.epoch());
        next = known ? last.sequence() + 1 : 0;
        if (!known) {
            next = feed.oldest();
            begun.write(EventText.gap(id(next - 1), last, "restart"));
        }
        stream = begun;
        pump(begun);
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
        if (next < upTo) {
            if (asked.compareAndSet(false, true)) {
                to.later(() -> pump(to));
            }
        } else if (++quiet % QUIET == 0) {
            to.later(() -> {
                to.write(":\n\n");
                to.flush();
            });
        }
    }

    private void pump(HttpStream to) {
        asked.set(false);
        boolean more = true;
        while (more && to.writable()) {
            EventBatch batch = feed.events().since(next, AT_ONCE);
            if (batch.lost()) {
                long oldest = batch.events().getFirst().sequence();
                to.write(EventText.gap(id(oldest - 1), id(next - 1), "history"));
            }
            StringBuilder text = new StringBuilder();
            for (CacheEvent event : batch.events()) {
                Namespace namespace = feed.names().of(event.namespaceId());
                if (shows(namespace)) {
                    text.append(EventText.of(event, namespace, id(event.sequence())));
                }
            }
            to.write(text.toString());
            next = batch.nextSequence();
            more = batch.events().size() == AT_ONCE;
        }
        to.flush();
    }

    private boolean shows(Namespace namespace) {
        return namespace.tenant().equals(tenant)
                && (only == null || namespace.model().equals(only));
    }

    @Override
    public void end() {
        HttpStream to = stream;
        if (to != null) {
            to.later(() -> {
                feed.remove(this);
                to.end();
            });
        }
    }

    @Override
    public void close() {
        feed.remove(this);
    }
}

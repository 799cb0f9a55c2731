package io.kvcache.server.event;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.Exchange;
import io.kvcache.server.http.HttpReplies;
import io.kvcache.server.http.HttpStream;
import io.kvcache.server.http.Problem;
import io.netty.handler.codec.http.HttpResponseStatus;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/// One client that follows.
///
/// It is handed what its socket takes and no more, so what it has not read is in no memory but the
/// store's history. Once it has lagged behind that it is told so. One that reads nothing at all is
/// closed as every slow reader is. Who begins with a snapshot is handed that first, likewise.
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
    private final @Nullable EventId last;
    private final AtomicBoolean asked = new AtomicBoolean();
    private volatile @Nullable HttpStream stream;
    private volatile long next;
    private int quiet;
    private volatile boolean telling;
    private Iterator<CacheEvent> untold = Collections.emptyIterator();
    private final AtomicBoolean holdsSnapshot = new AtomicBoolean();

    /// @param last the event before the first wanted one; null for a snapshot first
    /// @param only the model of the only namespace wanted, or null
    EventSubscription(EventFeed feed, @Nullable EventId last, String tenant, @Nullable String only) {
        this.feed = feed;
        this.last = last;
        this.tenant = tenant;
        this.only = only;
    }

    @Override
    public String tenant() {
        return tenant;
    }

    @Override
    public void answer(HttpReplies out) {
        if (!feed.add(this)) {
            out.problem(new Problem(
                    HttpResponseStatus.SERVICE_UNAVAILABLE,
                    "tenant " + tenant + " follows events as often as it may: of " + feed.most()
                            + " followers a tenant may have as many as are free; end another one first"));
            return;
        }
        if (last == null) {
            beginWithSnapshot(out);
        } else {
            goOnAfter(last, begin(out));
        }
    }

    private static HttpStream begin(HttpReplies out) {
        HttpStream begun = out.stream("text/event-stream");
        begun.write("retry: 1000\n\n");
        return begun;
    }

    private void goOnAfter(EventId seen, HttpStream begun) {
        boolean known = seen.epoch().equals(feed.epoch());
        next = known ? seen.sequence() + 1 : 0;
        if (!known) {
            next = feed.oldest();
            begun.write(EventText.gap(id(next - 1), seen, "restart"));
        }
        stream = begun;
        pump(begun);
    }

    private void beginWithSnapshot(HttpReplies out) {
        String refusal = feed.snapshots().enter();
        if (refusal != null) {
            feed.remove(this);
            out.problem(new Problem(HttpResponseStatus.SERVICE_UNAVAILABLE, refusal));
            return;
        }
        holdsSnapshot.set(true);
        HttpStream begun = begin(out);
        begun.flush();
        Thread.ofVirtual().name("kvcache-snapshot").start(() -> {
            StoreSnapshot snapshot = feed.snapshots().make();
            List<CacheEvent> shown = snapshot.stored().stream()
                    .filter(event -> shows(feed.names().of(event.namespaceId())))
                    .toList();
            begun.later(() -> tell(begun, shown, snapshot.nextSequence()));
        });
    }

    private void tell(HttpStream to, List<CacheEvent> stored, long nextSequence) {
        to.write(EventText.snapshot(stored.size()));
        next = nextSequence;
        untold = stored.iterator();
        telling = true;
        stream = to;
        pump(to);
    }

    /// Hands over as much of the snapshot as the socket takes; answers whether all of it is told.
    private boolean told(HttpStream to) {
        while (untold.hasNext() && to.writable()) {
            StringBuilder text = new StringBuilder();
            for (int left = AT_ONCE; left > 0 && untold.hasNext(); left--) {
                CacheEvent event = untold.next();
                text.append(EventText.stored(event, feed.names().of(event.namespaceId())));
            }
            to.write(text.toString());
        }
        if (untold.hasNext()) {
            return false;
        }
        telling = false;
        untold = Collections.emptyIterator();
        leaveSnapshot();
        to.write(EventText.live(id(next - 1)));
        return true;
    }

    private void leaveSnapshot() {
        if (holdsSnapshot.compareAndSet(true, false)) {
            feed.snapshots().leave();
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
        if (telling || next < upTo) {
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
        boolean more = !telling || told(to);
        while (more && to.writable()) {
            EventBatch batch = feed.events().since(next, AT_ONCE);
            if (batch.hasGap()) {
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
        untold = Collections.emptyIterator();
        leaveSnapshot();
        feed.remove(this);
    }
}

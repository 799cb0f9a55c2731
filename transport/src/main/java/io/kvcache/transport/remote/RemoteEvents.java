package io.kvcache.transport.remote;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.Snapshot;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.EventCodec;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/// The server's events, asked for page by page. Of namespaces only those are named that this cache has
/// registered.
final class RemoteEvents implements EventStream {

    private static final int MOST = 1 << 16;

    private final Asking asking;

    /// The session keeps one snapshot at a time.
    private final Object oneSnapshot = new Object();

    RemoteEvents(Asking asking) {
        this.asking = asking;
    }

    @Override
    public long nextSequence() {
        return page(Long.MAX_VALUE, 1).nextSequence();
    }

    @Override
    public EventBatch since(long sequence, int max) {
        if (max < 1 || max > MOST) {
            throw new IllegalArgumentException("max is " + max + "; it takes 1 to " + MOST);
        }
        EventBatch first = page(sequence, max);
        List<CacheEvent> events = new ArrayList<>(first.events());
        long next = first.nextSequence();
        boolean more = !events.isEmpty();
        while (more && events.size() < max) {
            EventBatch page = page(next, max - events.size());
            more = !page.lost() && !page.events().isEmpty();
            if (more) {
                events.addAll(page.events());
                next = page.nextSequence();
            }
        }
        return new EventBatch(events, first.lost(), next);
    }

    private EventBatch page(long sequence, int max) {
        BodyWriter body = new BodyWriter().i64(Math.max(0, sequence)).i32(max);
        return asking.must(MessageType.EVENTS, body, RemoteEvents::batch);
    }

    private static EventBatch batch(BodyReader reply) throws Violation {
        long next = reply.i64("next");
        boolean lost = reply.u8("lost") != 0;
        int count = reply.skip(3).count("events");
        return new EventBatch(events(reply, count), lost, next);
    }

    private static List<CacheEvent> events(BodyReader reply, int count) throws Violation {
        List<CacheEvent> events = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            events.add(EventCodec.read(reply));
        }
        return events;
    }

    /// A piece of a snapshot.
    private record Page(long number, long next, int stored, Map<Integer, Integer> names, List<CacheEvent> events) {

        static Page read(BodyReader reply) throws Violation {
            long number = reply.i64("snapshot");
            long next = reply.i64("next");
            int stored = reply.count("stored");
            int named = reply.count("namespaces");
            int count = reply.count("events");
            reply.skip(Integer.BYTES);
            Map<Integer, Integer> names = new HashMap<>();
            for (int i = 0; i < named; i++) {
                names.put(reply.i32("number"), reply.i32("own number"));
            }
            return new Page(number, next, stored, names, RemoteEvents.events(reply, count));
        }
    }

    @Override
    public Snapshot snapshot() {
        synchronized (oneSnapshot) {
            Page page = page(0, 0, Page::read);
            List<CacheEvent> stored = new ArrayList<>(page.events);
            Page last = page;
            while (stored.size() < page.stored && !last.events.isEmpty()) {
                last = page(page.number, stored.size(), Page::read);
                stored.addAll(last.events);
            }
            Map<Integer, Namespace> names = new HashMap<>();
            Map<Integer, Namespace> own = asking.names();
            page.names.forEach((id, number) -> {
                Namespace namespace = own.get(number);
                if (namespace != null) {
                    names.put(id, namespace);
                }
            });
            return new Snapshot(page.next, stored, names);
        }
    }

    private Page page(long number, int first, ControlLine.Parser<Page> parser) {
        return asking.must(
                MessageType.SNAPSHOT, new BodyWriter().i64(number).i32(first).i32(0), parser);
    }
}

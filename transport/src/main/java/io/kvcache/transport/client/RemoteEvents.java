package io.kvcache.transport.client;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.identity.Namespace;
import io.kvcache.transport.client.RemoteContext.RpcException;
import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.EventCodec;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/// The server's events, fetched page by page. Only namespaces that this cache has registered have a name here.
///
/// Each server numbers its events from 0. So this cache adds a base for each session. A follower that continues
/// from a number of an earlier session has lost the events between.
final class RemoteEvents implements EventStream {

    private static final int MAX_EVENTS = 1 << 16;

    /// Bits for the events of one session: ten thousand a second for fifty years.
    private static final int SESSION_SHIFT = 44;

    /// Most sessions with distinct bases that are not negative.
    private static final long MAX_SESSIONS = 1L << (Long.SIZE - 1 - SESSION_SHIFT);

    /// Pause between two requests for a snapshot.
    private static final long PAUSE_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

    private final RemoteContext client;

    /// The session keeps one snapshot at a time.
    private final Object snapshotLock = new Object();

    RemoteEvents(RemoteContext client) {
        this.client = client;
    }

    @Override
    public long nextSequence() {
        return page(Long.MAX_VALUE, 1).nextSequence();
    }

    @Override
    public EventBatch since(long sequence, int max) {
        if (max < 1 || max > MAX_EVENTS) {
            throw new IllegalArgumentException("max is " + max + "; it takes 1 to " + MAX_EVENTS);
        }
        EventBatch first = page(sequence, max);
        List<CacheEvent> events = new ArrayList<>(first.events());
        long next = first.nextSequence();
        boolean more = !events.isEmpty();
        while (more && events.size() < max) {
            EventBatch page = page(next, max - events.size());
            more = !page.hasGap() && !page.events().isEmpty();
            if (more) {
                events.addAll(page.events());
                next = page.nextSequence();
            }
        }
        return new EventBatch(events, first.hasGap(), next);
    }

    private EventBatch page(long sequence, int max) {
        return client.callOrThrow(session -> {
            long base = base(session);
            BodyWriter body = new BodyWriter().i64(Math.max(0, sequence - base)).i32(max);
            EventBatch batch = session.call(MessageType.EVENTS, body, RemoteEvents::batch, 0);
            boolean earlier = sequence >> SESSION_SHIFT < base >> SESSION_SHIFT;
            return new EventBatch(
                    renumbered(batch.events(), base), batch.hasGap() || earlier, base + batch.nextSequence());
        });
    }

    private static List<CacheEvent> renumbered(List<CacheEvent> events, long base) {
        if (base == 0) {
            return events;
        }
        return events.stream()
                .map(event -> new CacheEvent(
                        base + event.sequence(),
                        event.kind(),
                        event.tier(),
                        event.namespaceId(),
                        event.keyHi(),
                        event.keyLo(),
                        event.parentHi(),
                        event.parentLo(),
                        event.depth(),
                        event.engineHash(),
                        event.parentEngineHash()))
                .toList();
    }

    private static long base(RemoteSession session) {
        return (session.previousSessions() % MAX_SESSIONS) << SESSION_SHIFT;
    }

    private static EventBatch batch(BodyReader reply) throws ProtocolException {
        long next = reply.i64("next");
        boolean lost = reply.u8("lost") != 0;
        int count = reply.skip(3).count("events");
        return new EventBatch(events(reply, count), lost, next);
    }

    private static List<CacheEvent> events(BodyReader reply, int count) throws ProtocolException {
        List<CacheEvent> events = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            events.add(EventCodec.read(reply));
        }
        return events;
    }

    /// One page of a snapshot.
    private record Page(long number, long next, int stored, Map<Integer, Integer> names, List<CacheEvent> events) {

        static Page read(BodyReader reply) throws ProtocolException {
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
    public StoreSnapshot snapshot() {
        synchronized (snapshotLock) {
            return client.callOrThrow(this::snapshot);
        }
    }

    /// Fetches a snapshot over one session, as pages and namespace numbers belong to it.
    private StoreSnapshot snapshot(RemoteSession session) throws RpcException {
        Page page = firstPage(session);
        List<CacheEvent> stored = new ArrayList<>(page.events);
        Page last = page;
        while (stored.size() < page.stored && !last.events.isEmpty()) {
            last = session.call(MessageType.SNAPSHOT, pageRequest(page.number, stored.size()), Page::read, 0);
            stored.addAll(last.events);
        }
        Map<Integer, Namespace> names = new HashMap<>();
        Map<Integer, Namespace> own = session.namespacesByNumber();
        page.names.forEach((id, number) -> {
            Namespace namespace = own.get(number);
            if (namespace != null) {
                names.put(id, namespace);
            }
        });
        return new StoreSnapshot(base(session) + page.next, stored, names);
    }

    /// Requests a snapshot. Retries for a while when other clients hold as many as the server allows.
    private Page firstPage(RemoteSession session) throws RpcException {
        long start = System.nanoTime();
        while (true) {
            try {
                return session.call(MessageType.SNAPSHOT, pageRequest(0, 0), Page::read, 0);
            } catch (RpcException failed) {
                if (!failed.isBusy()
                        || System.nanoTime() - start > client.options().requestTimeoutNanos()
                        || Thread.currentThread().isInterrupted()) {
                    throw failed;
                }
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
    }

    private static BodyWriter pageRequest(long number, int first) {
        return new BodyWriter().i64(number).i32(first).i32(0);
    }
}

package io.kvcache.server.zmq;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.EventsConfig;
import io.kvcache.server.event.NamespaceIdResolver;
import io.kvcache.server.event.SnapshotLimiter;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/// Follows the store and publishes what happens to blocks, on one thread of its own.
///
/// Messages are numbered, and the last ones are kept for who has missed some. Who has missed more asks
/// for a snapshot: all that is stored at one moment, with the number of the first live message that is
/// not in it. Should the store's own history be overrun, everybody gets such a snapshot as live
/// messages.
///
/// **Ownership.** [#close] ends the thread and frees the sockets.
///
/// **Threads.** Any.
public final class ZmqPublisher implements AutoCloseable {

    private static final Logger LOG = System.getLogger(ZmqPublisher.class.getName());

    /// Events in one message.
    private static final int AT_ONCE = 512;

    /// How long the store is not looked at while nothing is asked.
    private static final int PAUSE_MILLIS = 20;

    private final EventsConfig config;
    private final EventStream events;
    private final NamespaceIdResolver names;
    private final SnapshotLimiter snapshots;
    private final InstantSource wall;
    private final VllmEvents encoder;
    private final ZmqSockets sockets;
    private final Deque<Message> kept = new ArrayDeque<>();
    private final Thread thread;
    private volatile boolean closed;
    private long nextEvent;
    private volatile long nextSequence;
    private final LongAdder replays = new LongAdder();
    private final LongAdder snapshotsAsked = new LongAdder();
    private final LongAdder overruns = new LongAdder();

    private ZmqPublisher(EventsConfig config, Followed followed, InstantSource wall, ZmqSockets sockets) {
        this.config = config;
        events = followed.events();
        names = followed.names();
        snapshots = followed.snapshots();
        this.wall = wall;
        this.sockets = sockets;
        encoder = new VllmEvents(config.encoding(), config.hashes());
        nextEvent = events.nextSequence();
        thread = Thread.ofPlatform().daemon().name("kvcache-events").unstarted(this::run);
    }

    /// What is followed.
    ///
    /// @param names the namespaces that events name by number
    /// @param snapshots asked before one is made; when it must not be, who asked for it is told of nothing stored
    public record Followed(EventStream events, NamespaceIdResolver names, SnapshotLimiter snapshots) {}

    /// Binds and begins to follow.
    ///
    /// @throws IOException when an endpoint cannot be had; the message names it
    public static ZmqPublisher open(EventsConfig config, Followed followed, InstantSource wall) throws IOException {
        ZmqPublisher publisher = new ZmqPublisher(config, followed, wall, ZmqSockets.bind(config));
        publisher.thread.start();
        return publisher;
    }

    /// Where it publishes, with the port that the system chose.
    public String publishEndpoint() {
        return sockets.publishEndpoint();
    }

    /// Where it answers, or an empty text.
    public String replayEndpoint() {
        return sockets.replayEndpoint();
    }

    /// Messages published.
    public long published() {
        return nextSequence;
    }

    /// Replays that were asked for.
    public long replayCount() {
        return replays.sum();
    }

    /// Snapshots that were asked for.
    public long snapshotCount() {
        return snapshotsAsked.sum();
    }

    /// Times that events came faster than they could be published, and everybody got a snapshot.
    public long overrunCount() {
        return overruns.sum();
    }

    private void run() {
        try {
            while (!closed) {
                ZmqSockets.Question question = sockets.await(PAUSE_MILLIS);
                follow(Long.MAX_VALUE);
                if (question != null) {
                    answer(question);
                }
            }
            follow(Long.MAX_VALUE);
        } catch (RuntimeException bug) {
            LOG.log(Level.ERROR, "events are not published any more", bug);
        } finally {
            sockets.close();
        }
    }

    /// Publishes what has happened before an event.
    private void follow(long until) {
        boolean more = true;
        while (more && nextEvent < until) {
            EventBatch batch = events.since(nextEvent, (int) Math.min(AT_ONCE, until - nextEvent));
            if (batch.hasGap()) {
                startOver();
                return;
            }
            nextEvent = batch.nextSequence();
            publish(batch.events());
            more = batch.events().size() == AT_ONCE;
        }
    }

    private void startOver() {
        overruns.increment();
        LOG.log(Level.WARNING, "events came faster than they could be published: everybody gets a snapshot");
        StoreSnapshot snapshot = makeSnapshot();
        nextEvent = snapshot.nextSequence();
        publish(new Message(config.topic(), nextSequence, encoder.cleared(seconds())));
        publish(snapshot.stored());
    }

    /// All that is stored; or, where the heap could not hold that, nothing: followers then know of less than there is.
    private StoreSnapshot makeSnapshot() {
        String refusal = snapshots.tryAcquire();
        if (refusal != null) {
            LOG.log(Level.WARNING, "followers are told of nothing that is stored: {0}", refusal);
            return new StoreSnapshot(events.nextSequence(), List.of(), Map.of());
        }
        try {
            return snapshots.createSnapshot();
        } finally {
            snapshots.release();
        }
    }

    private void publish(List<CacheEvent> all) {
        for (List<CacheEvent> run : runs(all)) {
            publish(message(run, nextSequence));
        }
    }

    private void publish(Message message) {
        sockets.publish(message);
        nextSequence = message.sequence() + 1;
        kept.addLast(message);
        if (kept.size() > config.replayBatches()) {
            kept.removeFirst();
        }
    }

    /// The events of blocks that are told of, in runs of one namespace.
    private List<List<CacheEvent>> runs(List<CacheEvent> all) {
        List<List<CacheEvent>> runs = new ArrayList<>();
        List<CacheEvent> run = new ArrayList<>();
        for (CacheEvent event : all) {
            Namespace namespace = names.resolve(event.namespaceId());
            if (namespace.parts().isEmpty() || !namespace.tenant().equals(config.tenant())) {
                continue;
            }
            if (!run.isEmpty() && (run.getFirst().namespaceId() != event.namespaceId() || run.size() == AT_ONCE)) {
                runs.add(run);
                run = new ArrayList<>();
            }
            run.add(event);
        }
        if (!run.isEmpty()) {
            runs.add(run);
        }
        return runs;
    }

    private Message message(List<CacheEvent> run, long sequence) {
        Namespace namespace = names.resolve(run.getFirst().namespaceId());
        String topic = config.topic().replace("{namespace}", namespace.model());
        return new Message(topic, sequence, encoder.batch(seconds(), namespace, run));
    }

    private double seconds() {
        return wall.millis() / 1e3;
    }

    private void answer(ZmqSockets.Question question) {
        (question.snapshot() ? snapshotsAsked : replays).increment();
        List<Message> reply = question.snapshot() ? snapshot() : replay(question.from());
        for (Message message : reply) {
            if (!sockets.reply(question, message)) {
                return; // gone, or does not read
            }
        }
        sockets.reply(question, Message.end(config.topic()));
    }

    private List<Message> replay(long from) {
        List<Message> reply = new ArrayList<>();
        for (Message message : kept) {
            if (message.sequence() >= from) {
                reply.add(message);
            }
        }
        return reply;
    }

    /// All that is stored now; each message has the number of the first live one that is not in it.
    private List<Message> snapshot() {
        StoreSnapshot snapshot = makeSnapshot();
        follow(snapshot.nextSequence());
        List<Message> reply = new ArrayList<>();
        reply.add(new Message(config.topic(), nextSequence, encoder.cleared(seconds())));
        List<CacheEvent> stored = new ArrayList<>(snapshot.stored());
        for (List<CacheEvent> run : runs(stored)) {
            reply.add(message(run, nextSequence));
        }
        return reply;
    }

    @Override
    public void close() {
        closed = true;
        try {
            thread.join();
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}

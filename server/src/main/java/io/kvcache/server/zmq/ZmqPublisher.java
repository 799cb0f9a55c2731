package io.kvcache.server.zmq;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.EventsConfig;
import io.kvcache.server.event.EventFeed;
import io.kvcache.server.zmq.ZmqPublisher.ZmqSockets.ZmqMessage;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.InstantSource;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZMQ;
import org.zeromq.ZMQException;
import org.zeromq.ZMsg;

/// Follows the store and publishes what happens to blocks, on one thread of its own.
///
/// Messages are numbered, and the last ones are kept for subscribers that missed some. A subscriber that missed
/// more asks for a snapshot: all that is stored at one moment, with the number of the first live message that is
/// not in it. If the store's own history is overrun, every subscriber gets such a snapshot as live messages.
///
/// **Ownership.** [#close] ends the thread and frees the sockets.
///
/// **Threads.** Any.
public final class ZmqPublisher implements AutoCloseable {

    private static final Logger LOG = System.getLogger(ZmqPublisher.class.getName());

    /// Events in one message.
    private static final int MAX_BATCH = 512;

    /// How long the store is not looked at while nothing is asked.
    private static final int PAUSE_MILLIS = 20;

    private final EventsConfig config;
    private final EventStream events;
    private final EventFeed feed;
    private final InstantSource wall;
    private final VllmEventEncoder encoder;
    private final ZmqSockets sockets;
    private final Deque<ZmqMessage> replayBuffer = new ArrayDeque<>();
    private final Thread thread;
    private volatile boolean closed;
    private long nextEvent;
    private volatile long nextSequence;
    private final LongAdder replays = new LongAdder();
    private final LongAdder snapshotRequests = new LongAdder();
    private final LongAdder overruns = new LongAdder();

    private ZmqPublisher(EventsConfig config, EventFeed feed, boolean local, InstantSource wall, ZmqSockets sockets) {
        this.config = config;
        this.feed = feed;
        events = feed.events();
        this.wall = wall;
        this.sockets = sockets;
        encoder = new VllmEventEncoder(config.encoding(), config.hashes(), config.media(), local);
        nextEvent = events.nextSequence();
        thread = Thread.ofPlatform().daemon().name("kvcache-events").unstarted(this::run);
    }

    /// Binds and begins to follow.
    ///
    /// @param feed of the published events; where it refuses a snapshot, the subscriber gets an empty one
    /// @param local whether only clients of this host reach the store
    /// @throws IOException when an endpoint cannot be had; the message names it
    public static ZmqPublisher open(EventsConfig config, EventFeed feed, boolean local, InstantSource wall)
            throws IOException {
        ZmqPublisher publisher = new ZmqPublisher(config, feed, local, wall, ZmqSockets.bind(config));
        publisher.thread.start();
        return publisher;
    }

    /// Returns the endpoint at which it publishes, with the port that the system chose.
    public String publishEndpoint() {
        return sockets.publishEndpoint();
    }

    /// Returns the endpoint of the replay socket, or an empty text.
    public String replayEndpoint() {
        return sockets.replayEndpoint();
    }

    /// Messages published.
    public long publishedCount() {
        return nextSequence;
    }

    /// Replays that were asked for.
    public long replayCount() {
        return replays.sum();
    }

    /// Snapshots that were asked for.
    public long snapshotCount() {
        return snapshotRequests.sum();
    }

    /// Times that events came faster than they could be published, and every subscriber got a snapshot.
    public long overrunCount() {
        return overruns.sum();
    }

    private void run() {
        try {
            while (!closed) {
                ZmqSockets.ReplayRequest replayRequest = sockets.awaitRequest(PAUSE_MILLIS);
                publishUntil(Long.MAX_VALUE);
                if (replayRequest != null) {
                    serveReplay(replayRequest);
                }
            }
            publishUntil(Long.MAX_VALUE);
        } catch (RuntimeException bug) {
            LOG.log(Level.ERROR, "publishing events failed and has stopped", bug);
        } finally {
            sockets.close();
        }
    }

    /// Publishes what has happened before an event.
    private void publishUntil(long until) {
        boolean more = true;
        while (more && nextEvent < until) {
            EventBatch batch = events.since(nextEvent, (int) Math.min(MAX_BATCH, until - nextEvent));
            if (batch.hasGap()) {
                restartFromSnapshot();
                return;
            }
            nextEvent = batch.nextSequence();
            publish(batch.events());
            more = batch.events().size() == MAX_BATCH;
        }
    }

    private void restartFromSnapshot() {
        overruns.increment();
        LOG.log(Level.WARNING, "events came faster than they could be published: every subscriber gets a snapshot");
        StoreSnapshot snapshot = makeSnapshot();
        nextEvent = snapshot.nextSequence();
        publish(new ZmqMessage(config.topic(), nextSequence, encoder.encodeCleared(seconds())));
        publish(snapshot.stored());
    }

    /// All that is stored; or, where the heap could not hold that, nothing: followers then know of less than there
    /// is.
    private StoreSnapshot makeSnapshot() {
        String refusal = feed.tryAcquireSnapshot();
        if (refusal != null) {
            LOG.log(Level.WARNING, "followers get an empty snapshot: {0}", refusal);
            return new StoreSnapshot(events.nextSequence(), List.of(), Map.of());
        }
        try {
            return events.snapshot();
        } finally {
            feed.releaseSnapshot();
        }
    }

    private void publish(List<CacheEvent> all) {
        for (List<CacheEvent> run : groupByNamespace(all)) {
            publish(message(run, nextSequence));
        }
    }

    private void publish(ZmqMessage message) {
        sockets.publish(message);
        nextSequence = message.sequence() + 1;
        replayBuffer.addLast(message);
        if (replayBuffer.size() > config.replayBatches()) {
            replayBuffer.removeFirst();
        }
    }

    /// The events of blocks that are told of, in runs of one namespace.
    private List<List<CacheEvent>> groupByNamespace(List<CacheEvent> all) {
        List<List<CacheEvent>> runs = new ArrayList<>();
        List<CacheEvent> run = new ArrayList<>();
        for (CacheEvent event : all) {
            Namespace namespace = feed.namespace(event.namespaceId());
            if (!VllmEventEncoder.isBlock(namespace, event)
                    || !namespace.owner().equals(config.tenant())) {
                continue;
            }
            if (!run.isEmpty() && (run.getFirst().namespaceId() != event.namespaceId() || run.size() == MAX_BATCH)) {
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

    private ZmqMessage message(List<CacheEvent> run, long sequence) {
        Namespace namespace = feed.namespace(run.getFirst().namespaceId());
        String topic = config.topic().replace("{namespace}", namespace.model());
        return new ZmqMessage(topic, sequence, encoder.encodeBatch(seconds(), namespace, run));
    }

    private double seconds() {
        return wall.millis() / 1e3;
    }

    private void serveReplay(ZmqSockets.ReplayRequest replayRequest) {
        (replayRequest.snapshot() ? snapshotRequests : replays).increment();
        List<ZmqMessage> reply = replayRequest.snapshot() ? snapshot() : replay(replayRequest.from());
        for (ZmqMessage message : reply) {
            if (!sockets.reply(replayRequest, message)) {
                return; // gone, or does not read
            }
        }
        sockets.reply(replayRequest, ZmqMessage.end(config.topic()));
    }

    private List<ZmqMessage> replay(long from) {
        List<ZmqMessage> reply = new ArrayList<>();
        for (ZmqMessage message : replayBuffer) {
            if (message.sequence() >= from) {
                reply.add(message);
            }
        }
        return reply;
    }

    /// All that is stored now; each message has the number of the first live one that is not in it.
    private List<ZmqMessage> snapshot() {
        StoreSnapshot snapshot = makeSnapshot();
        publishUntil(snapshot.nextSequence());
        List<ZmqMessage> reply = new ArrayList<>();
        reply.add(new ZmqMessage(config.topic(), nextSequence, encoder.encodeCleared(seconds())));
        List<CacheEvent> stored = new ArrayList<>(snapshot.stored());
        for (List<CacheEvent> run : groupByNamespace(stored)) {
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

    /// The two sockets: one that publishes and one that answers.
    ///
    /// A request has an empty frame and then 8 bytes, the number of the first message wanted, or the word
    /// `snapshot`. No message ever gets the number that these 8 letters are.
    ///
    /// **Threads.** One, after it was bound.
    static final class ZmqSockets implements AutoCloseable {

        /// Messages that may wait for one follower; what comes then is not sent to it. As with vLLM.
        private static final int HIGH_WATER_MARK = 100_000;

        /// How long the last messages may take at the end.
        private static final int LINGER_MILLIS = 200;

        private static final byte[] SNAPSHOT = "snapshot".getBytes(StandardCharsets.US_ASCII);
        private static final byte[] EMPTY = {};

        private final ZContext context;
        private final ZMQ.Socket publisher;
        private final ZMQ.@Nullable Socket router;
        private final ZMQ.Poller poller;
        private final boolean replayTopic;

        /// A follower's request.
        ///
        /// @param identity where the reply goes
        /// @param from first message wanted, of a replay
        @SuppressWarnings("ArrayRecordComponent") // never compared
        record ReplayRequest(byte[] identity, boolean snapshot, long from) {}

        private ZmqSockets(ZContext context, ZMQ.Socket publisher, ZMQ.@Nullable Socket router, boolean replayTopic) {
            this.context = context;
            this.publisher = publisher;
            this.router = router;
            this.replayTopic = replayTopic;
            poller = context.createPoller(1);
            if (router != null) {
                poller.register(router, ZMQ.Poller.POLLIN);
            }
        }

        static ZmqSockets bind(EventsConfig config) throws IOException {
            ZContext context = new ZContext();
            context.setLinger(LINGER_MILLIS);
            try {
                ZMQ.Socket publisher = bindSocket(context, SocketType.PUB, config.publish());
                ZMQ.Socket router =
                        config.replay().isEmpty() ? null : bindSocket(context, SocketType.ROUTER, config.replay());
                if (router != null) {
                    router.setRouterMandatory(true); // notices subscribers that are gone or do not read
                }
                return new ZmqSockets(context, publisher, router, config.replayTopic());
            } catch (IOException failed) {
                context.close();
                throw failed;
            }
        }

        private static ZMQ.Socket bindSocket(ZContext context, SocketType type, String endpoint) throws IOException {
            ZMQ.Socket socket = context.createSocket(type);
            socket.setHWM(HIGH_WATER_MARK);
            try {
                if (!socket.bind(endpoint)) {
                    throw new IOException("cannot publish events at " + endpoint);
                }
            } catch (ZMQException | IllegalArgumentException refused) {
                throw new IOException("cannot publish events at " + endpoint + ": " + refused.getMessage(), refused);
            }
            return socket;
        }

        String publishEndpoint() {
            return publisher.getLastEndpoint();
        }

        String replayEndpoint() {
            return router == null ? "" : router.getLastEndpoint();
        }

        void publish(ZmqMessage message) {
            publisher.sendMore(message.topic());
            publisher.sendMore(number(message.sequence()));
            publisher.send(message.payload());
        }

        /// The next request, or null when none came in time.
        @Nullable
        ReplayRequest awaitRequest(int millis) {
            ZMQ.Socket from = router;
            if (poller.poll(millis) <= 0 || from == null) {
                return null;
            }
            ZMsg message = ZMsg.recvMsg(from, ZMQ.DONTWAIT);
            if (message == null || message.size() < 2) {
                return null;
            }
            byte[] asker = message.pop().getData();
            byte[] asked = message.getLast().getData();
            if (asked.length != Long.BYTES) {
                return null;
            }
            boolean snapshot = Arrays.equals(asked, SNAPSHOT);
            return new ReplayRequest(asker, snapshot, ByteBuffer.wrap(asked).getLong());
        }

        /// Answers whether the asker is still there and reads.
        boolean reply(ReplayRequest replayRequest, ZmqMessage message) {
            ZMQ.Socket to = router;
            if (to == null) {
                return false;
            }
            try {
                if (!to.send(replayRequest.identity(), ZMQ.SNDMORE | ZMQ.DONTWAIT)) {
                    return false;
                }
                to.sendMore(EMPTY);
                if (replayTopic) {
                    to.sendMore(message.topic());
                }
                to.sendMore(number(message.sequence()));
                return to.send(message.payload());
            } catch (ZMQException gone) {
                return false;
            }
        }

        private static byte[] number(long value) {
            return ByteBuffer.allocate(Long.BYTES).putLong(value).array();
        }

        @Override
        public void close() {
            poller.close();
            context.close();
        }

        /// A batch as it was or will be sent.
        ///
        /// @param sequence counts messages from 0; all ones for the end of a reply
        @SuppressWarnings("ArrayRecordComponent") // sent, never compared
        record ZmqMessage(String topic, long sequence, byte[] payload) {

            private static final byte[] NOTHING = {};

            /// Ends what was asked for.
            static ZmqMessage end(String topic) {
                return new ZmqMessage(topic, -1, NOTHING);
            }
        }
    }
}

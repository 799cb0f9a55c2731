package io.kvcache.server.zmq;

import io.kvcache.core.engine.EngineValueKey;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventBatch;
import io.kvcache.core.event.EventStream;
import io.kvcache.core.event.StoreSnapshot;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.EventsConfig;
import io.kvcache.server.config.EventsConfig.EventEncoding;
import io.kvcache.server.config.EventsConfig.EventHashes;
import io.kvcache.server.config.EventsConfig.EventMedia;
import io.kvcache.server.event.EventFeed;
import io.kvcache.server.zmq.ZmqPublisher.ZmqSockets.ZmqMessage;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.math.BigInteger;
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
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.msgpack.core.MessageBufferPacker;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessagePacker;
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

    /// Events of one namespace as a batch in vLLM's schema, in MessagePack.
    ///
    /// A batch is `[seconds, [event, ...], nil]`. Blocks of one chain that were stored one after the other
    /// become one `BlockStored`, blocks that left one tier one after the other become one `BlockRemoved`.
    /// The store does not know a block's tokens, so `token_ids` is empty: followers go by the hashes, as
    /// they do for vLLM's own CPU tier.
    ///
    /// **Values** that an engine has stored under its own hashes ([EngineValueKey#hashIn]) are blocks as well.
    /// Which block comes before one is not known then; neither are tokens and group, unless the layout of the
    /// namespace has `tokens=16`, of the only group, or `page=64`. vLLM tells blocks of its lower tiers alike,
    /// with a `block_size` of 0.
    ///
    /// Every field that vLLM's classes require is written, nil where it has no value: a missing one makes them
    /// refuse the batch. Of the fields with a default, `group_idx` is written, since followers of models with
    /// several KV groups keep blocks by group, and in maps `locality` and `ownership`, by which they tell a store
    /// that engines share from an engine's own memory. Older classes skip members that they do not know, in maps
    /// by name and in arrays at the end.
    ///
    /// @param encoding how each event is written
    /// @param hashes how blocks are named
    /// @param media whose names `medium` has
    /// @param local whether only engines of this host reach the store
    record VllmEventEncoder(EventEncoding encoding, EventHashes hashes, EventMedia media, boolean local) {

        /// As the tier is called in vLLM's settings.
        private static final String OWNERSHIP = "kvcache";

        private static final Pattern TOKENS = Pattern.compile(" (?:tokens|page)=(\\d{1,6})(?: |$)");
        private static final int UNKNOWN = -1;

        /// Returns whether an event is of something that an engine's follower knows: a block, or a value with an
        /// engine's hash.
        static boolean isBlock(Namespace namespace, CacheEvent event) {
            return !namespace.parts().isEmpty() || event.engineHash() != 0;
        }

        /// The payload of a batch.
        ///
        /// @param events of one namespace, at least one
        byte[] encodeBatch(double seconds, Namespace namespace, List<CacheEvent> events) {
            List<List<CacheEvent>> runs = groupByChain(events);
            return encodeBatch(seconds, runs.size(), out -> {
                for (List<CacheEvent> run : runs) {
                    write(out, namespace, run);
                }
            });
        }

        /// Returns the payload of a batch that revokes all earlier events.
        byte[] encodeCleared(double seconds) {
            return encodeBatch(seconds, 1, out -> begin(out, "AllBlocksCleared", 0));
        }

        private interface EventWriter {
            void write(MessagePacker out) throws IOException;
        }

        private static byte[] encodeBatch(double seconds, int count, EventWriter eventWriter) {
            try (MessageBufferPacker out = MessagePack.newDefaultBufferPacker()) {
                out.packArrayHeader(3).packDouble(seconds).packArrayHeader(count);
                eventWriter.write(out);
                out.packNil();
                return out.toByteArray();
            } catch (IOException impossible) {
                throw new UncheckedIOException("heap memory was not written", impossible);
            }
        }

        private static List<List<CacheEvent>> groupByChain(List<CacheEvent> events) {
            List<List<CacheEvent>> runs = new ArrayList<>();
            int from = 0;
            for (int to = 1; to <= events.size(); to++) {
                if (to == events.size() || !continuesChain(events.get(to - 1), events.get(to))) {
                    runs.add(events.subList(from, to));
                    from = to;
                }
            }
            return runs;
        }

        private static boolean continuesChain(CacheEvent before, CacheEvent next) {
            boolean alike = before.kind().isAddition() == next.kind().isAddition() && before.tier() == next.tier();
            boolean follows = next.depth() == before.depth() + 1
                    && next.parentHi() == before.keyHi()
                    && next.parentLo() == before.keyLo();
            return alike && (follows || !next.kind().isAddition());
        }

        private void write(MessagePacker out, Namespace namespace, List<CacheEvent> run) throws IOException {
            if (run.getFirst().kind().isAddition()) {
                stored(out, namespace, run);
            } else {
                begin(out, "BlockRemoved", encoding == EventEncoding.MAP ? 5 : 3);
                blockHashes(out, namespace, run);
                name(out, "medium").packString(medium(run.getFirst().tier()));
                groupAndPlace(out, namespace);
            }
        }

        private void stored(MessagePacker out, Namespace namespace, List<CacheEvent> run) throws IOException {
            String adapter = namespace.adapter();
            begin(out, "BlockStored", encoding == EventEncoding.MAP ? 10 : 9);
            blockHashes(out, namespace, run);
            CacheEvent first = run.getFirst();
            name(out, "parent_block_hash");
            if (first.depth() == 0) {
                out.packNil();
            } else {
                hash(out, namespace, first.parentEngineHash(), first.parentHi(), first.parentLo());
            }
            name(out, "token_ids").packArrayHeader(0);
            name(out, "block_size").packInt(Math.max(0, blockTokens(namespace)));
            name(out, "lora_id").packNil();
            name(out, "medium").packString(medium(first.tier()));
            name(out, "lora_name");
            if (adapter.isEmpty()) {
                out.packNil();
            } else {
                out.packString(adapter);
            }
            if (encoding == EventEncoding.ARRAY) {
                out.packNil(); // extra_keys
            }
            groupAndPlace(out, namespace);
        }

        private void groupAndPlace(MessagePacker out, Namespace namespace) throws IOException {
            name(out, "group_idx");
            if (!namespace.parts().isEmpty()) {
                out.packInt(namespace.parts().getFirst().group());
            } else if (blockTokens(namespace) == UNKNOWN) {
                out.packNil();
            } else {
                out.packInt(0);
            }
            if (encoding == EventEncoding.MAP) {
                name(out, "locality").packString(local ? "LOCAL" : "REMOTE");
                name(out, "ownership").packString(OWNERSHIP);
            }
        }

        /// Tokens of a block, or [#UNKNOWN].
        private static int blockTokens(Namespace namespace) {
            if (!namespace.parts().isEmpty()) {
                return namespace.blockTokens();
            }
            Matcher found = TOKENS.matcher(namespace.layout());
            return found.find() ? Integer.parseInt(found.group(1)) : UNKNOWN;
        }

        private void begin(MessagePacker out, String type, int members) throws IOException {
            if (encoding == EventEncoding.MAP) {
                out.packMapHeader(1 + members).packString("type").packString(type);
            } else {
                out.packArrayHeader(1 + members).packString(type);
            }
        }

        private MessagePacker name(MessagePacker out, String name) throws IOException {
            return encoding == EventEncoding.MAP ? out.packString(name) : out;
        }

        private void blockHashes(MessagePacker out, Namespace namespace, List<CacheEvent> run) throws IOException {
            name(out, "block_hashes").packArrayHeader(run.size());
            for (CacheEvent event : run) {
                hash(out, namespace, event.engineHash(), event.keyHi(), event.keyLo());
            }
        }

        private void hash(MessagePacker out, Namespace namespace, long engineHash, long keyHi, long keyLo)
                throws IOException {
            if (hashes == EventHashes.KEY) {
                out.packBinaryHeader(16);
                out.addPayload(
                        ByteBuffer.allocate(16).putLong(keyHi).putLong(keyLo).array());
            } else if (EngineValueKey.isSigned(namespace)) {
                out.packLong(engineHash);
            } else {
                unsigned(out, engineHash == 0 ? keyLo : engineHash);
            }
        }

        /// @param value all 64 bits count
        private static void unsigned(MessagePacker out, long value) throws IOException {
            if (value >= 0) {
                out.packLong(value);
            } else {
                out.packBigInteger(BigInteger.valueOf(value & Long.MAX_VALUE).setBit(Long.SIZE - 1));
            }
        }

        private String medium(TierKind tier) {
            boolean vllm = media == EventMedia.VLLM;
            return switch (tier) {
                case DEVICE -> "GPU";
                case HOST -> vllm ? "CPU" : "CPU_PINNED";
                case DISK -> vllm ? "STORAGE" : "DISK";
                case REMOTE -> vllm ? "REMOTE" : "EXTERNAL";
            };
        }
    }
}

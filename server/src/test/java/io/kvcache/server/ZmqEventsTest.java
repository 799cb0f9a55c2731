package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.EventsConfig;
import io.kvcache.server.config.EventsConfig.EventEncoding;
import io.kvcache.server.config.EventsConfig.EventHashes;
import io.kvcache.server.config.EventsConfig.EventMedia;
import io.kvcache.server.zmq.ZmqPublisher;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.msgpack.core.MessagePack;
import org.msgpack.value.Value;
import org.zeromq.SocketType;
import org.zeromq.ZContext;
import org.zeromq.ZEvent;
import org.zeromq.ZMQ;
import org.zeromq.ZMsg;

/// A router that follows by ZeroMQ.
@Timeout(300)
final class ZmqEventsTest {

    /// vLLM's digests of tokens 1..4 and 5..8 in blocks of 4, and their numbers in an event.
    private static final String FIRST = "58d0879dff3800f65f8c5fd449d73048c0f7699dd238a03b84b146b151d55111";

    private static final String SECOND = "e1bc29393a2da9fd798f35ff04d215f846aee6df4b803ce3d43b57df56b58fb1";
    private static final String SECOND_EVENT = "15292913576410714033";
    private static final String FIRST_EVENT = "9561501211280363793";

    private static final Namespace MODEL = Namespace.of("m", BlockShape.kv(1, 1, 8, 4, Dtype.BF16)).toBuilder()
            .tenant("default")
            .build();

    private final TestServer server = start(10_000);
    private final HttpTestClient httpTestClient = new HttpTestClient(server.port());
    private final List<ZContext> contexts = new ArrayList<>();

    private static TestServer start(int batches) {
        return TestServer.start(new EventsConfig(
                "tcp://127.0.0.1:*",
                "tcp://127.0.0.1:*",
                "kv@here@{namespace}",
                EventEncoding.MAP,
                EventHashes.ENGINE,
                EventMedia.VLLM,
                true,
                batches,
                "default",
                false));
    }

    @AfterEach
    void stop() {
        contexts.forEach(ZContext::close);
        httpTestClient.close();
        server.close();
    }

    private record Told(String topic, long sequence, List<Value> events) {}

    private static ZmqPublisher publisher(TestServer of) {
        return Objects.requireNonNull(of.server().publisher());
    }

    private ZMQ.Socket subscriber(TestServer to) {
        return connected(SocketType.SUB, publisher(to).publishEndpoint());
    }

    private ZMQ.Socket dealer(TestServer to) {
        return connected(SocketType.DEALER, publisher(to).replayEndpoint());
    }

    /// A client that is heard. JeroMQ's connecting side is not about once in fifty times: it connects, and then
    /// never reads the greeting, also with a server that is nothing but JeroMQ. Then all of it is made anew.
    private ZMQ.Socket connected(SocketType type, String endpoint) {
        while (true) {
            ZContext context = new ZContext();
            ZMQ.Socket socket = context.createSocket(type);
            socket.setReceiveTimeOut(60_000);
            if (type == SocketType.SUB) {
                socket.subscribe("kv@here");
            }
            socket.monitor("inproc://events", ZMQ.EVENT_HANDSHAKE_PROTOCOL);
            ZMQ.Socket monitor = context.createSocket(SocketType.PAIR);
            monitor.setReceiveTimeOut(2_000);
            monitor.connect("inproc://events");
            socket.connect(endpoint);
            if (ZEvent.recv(monitor) != null) {
                contexts.add(context);
                return socket;
            }
            context.close();
        }
    }

    private static @Nullable Told told(String topic, byte[] number, byte[] payload) throws Exception {
        long sequence = ByteBuffer.wrap(number).getLong();
        if (payload.length == 0) {
            assertThat(sequence).isEqualTo(-1);
            return null;
        }
        try (var unpacker = MessagePack.newDefaultUnpacker(payload)) {
            Value batch = unpacker.unpackValue();
            return new Told(
                    topic, sequence, batch.asArrayValue().get(1).asArrayValue().list());
        }
    }

    private static Told live(ZMQ.Socket socket) throws Exception {
        ZMsg message = Objects.requireNonNull(ZMsg.recvMsg(socket), "nothing was published in time");
        assertThat(message).hasSize(3);
        String topic = message.popString();
        return Objects.requireNonNull(
                told(topic, message.pop().getData(), message.pop().getData()));
    }

    private static List<Told> ask(ZMQ.Socket dealer, byte[] question) throws Exception {
        dealer.sendMore(new byte[0]);
        dealer.send(question);
        List<Told> all = new ArrayList<>();
        while (true) {
            ZMsg message = Objects.requireNonNull(ZMsg.recvMsg(dealer), "no reply in time");
            assertThat(message).hasSize(4);
            assertThat(message.pop().getData()).isEmpty();
            String topic = message.popString();
            Told next = told(topic, message.pop().getData(), message.pop().getData());
            if (next == null) {
                return all;
            }
            all.add(next);
        }
    }

    private static List<Told> replay(ZMQ.Socket dealer, long from) throws Exception {
        return ask(dealer, ByteBuffer.allocate(8).putLong(from).array());
    }

    /// Applies batches as a router does, by hash, counting media.
    private static void apply(List<Told> batches, Set<String> stored) {
        for (Told batch : batches) {
            for (Value event : batch.events()) {
                var members = event.asMapValue().map();
                String type = member(members, "type").toString();
                if (type.contains("Cleared")) {
                    stored.clear();
                    continue;
                }
                String medium = member(members, "medium").toString();
                for (Value hash : member(members, "block_hashes").asArrayValue()) {
                    boolean changed =
                            type.contains("Stored") ? stored.add(medium + hash) : stored.remove(medium + hash);
                    assertThat(changed).as("%s of %s", type, hash).isTrue();
                }
            }
        }
    }

    private static Value member(java.util.Map<Value, Value> members, String name) {
        return Objects.requireNonNull(members.get(org.msgpack.value.ValueFactory.newString(name)));
    }

    private static BlockChain chain(int sequence, int blocks) {
        return BlockChain.of(
                MODEL,
                IntStream.range(0, 4 * blocks).map(i -> sequence * 1000 + i).toArray());
    }

    /// The note of [#apply] for a block of a chain that is in host memory.
    private static String stored(int sequence, int index) {
        return "CPU" + Long.toUnsignedString(chain(sequence, index + 1).keyLo(index));
    }

    private static void put(KvCache cache, BlockChain chain) {
        cache.register(chain.namespace());
        for (int index = 0; index < chain.length(); index++) {
            try (BlockWriter writer = cache.put(chain, index, 0, KvCache.NO_WAIT)) {
                writer.seal();
            }
        }
    }

    @Test
    void givenBlocksWithVllmsHashes_whenStored_thenARouterSeesVllmsEvents() throws Exception {
        EngineBlocks blocks =
                EngineBlocks.register(server.server(), "default", "m", BlockShape.kv(1, 1, 8, 4, Dtype.BF16));
        assertThat(blocks.put(FIRST, "") && blocks.put(SECOND, FIRST)).isTrue();
        ZMQ.Socket dealer = dealer(server);
        List<Told> all = replay(dealer, 0);
        while (!all.toString().contains(SECOND_EVENT)) {
            all = replay(dealer, 0); // until both are published
        }
        assertThat(all.getFirst().topic()).isEqualTo("kv@here@m");
        assertThat(all.getFirst().sequence()).isZero();
        assertThat(all.toString())
                .contains("\"type\":\"BlockStored\"", FIRST_EVENT, "\"medium\":\"CPU\"", "\"block_size\":4");
    }

    @Test
    void givenASubscriberThatMissedSome_whenItAsksForAReplay_thenItKnowsWhatTheStoreHas() throws Exception {
        KvCache cache = server.server().cache();
        Set<String> stored = new HashSet<>();
        ZMQ.Socket subscriber = subscriber(server);
        put(cache, chain(0, 3)); // before it may have been subscribed
        int number = 1;
        subscriber.setReceiveTimeOut(50);
        ZMsg first = ZMsg.recvMsg(subscriber);
        while (first == null) {
            put(cache, chain(number++, 3));
            first = ZMsg.recvMsg(subscriber);
        }
        subscriber.setReceiveTimeOut(60_000);
        String topic = first.popString();
        Told told = Objects.requireNonNull(
                told(topic, first.pop().getData(), first.pop().getData()));
        List<Told> missed = replay(dealer(server), 0).stream()
                .filter(each -> each.sequence() < told.sequence())
                .toList();
        assertThat(missed).hasSize((int) told.sequence());
        apply(missed, stored);
        apply(List.of(told), stored);
        cache.drop(chain(0, 3), 1);
        put(cache, chain(number++, 3));
        String last = stored(number - 1, 2);
        long next = told.sequence() + 1;
        while (!stored.contains(last)) { // what happened before was told before
            Told more = live(subscriber);
            assertThat(more.sequence()).isEqualTo(next++);
            apply(List.of(more), stored);
        }
        Set<String> expected = new HashSet<>();
        for (int each = 0; each < number; each++) {
            for (int index = 0; index < (each == 0 ? 1 : 3); index++) {
                expected.add(stored(each, index));
            }
        }
        assertThat(stored).isEqualTo(expected);
    }

    @Test
    void givenAHistoryThatHasRolled_whenASnapshotIsAskedFor_thenItAndLiveEventsGiveTheWhole() throws Exception {
        try (TestServer small = start(5)) {
            KvCache cache = small.server().cache();
            for (int number = 0; number < 50; number++) {
                long published = publisher(small).publishedCount();
                put(cache, chain(number, 5));
                cache.drop(chain(number, 5), number % 5);
                while (publisher(small).publishedCount() == published) {
                    Pause.briefly(); // so that there are more messages than are kept
                }
            }
            ZMQ.Socket dealer = dealer(small);
            List<Told> replayed = replay(dealer, 0);
            assertThat(replayed).hasSize(5);
            assertThat(replayed.getFirst().sequence()).isGreaterThan(10);

            Set<String> stored = new HashSet<>(Set.of("something old"));
            List<Told> snapshot = ask(dealer, "snapshot".getBytes(US_ASCII));
            apply(snapshot, stored);
            assertThat(snapshot.stream().map(Told::sequence).distinct()).hasSize(1);
            cache.drop(chain(4, 5), 0); // four blocks are left of it
            put(cache, chain(50, 1));
            Set<String> asOfSnapshot = Set.copyOf(stored);
            while (!stored.contains(stored(50, 0))) { // what happened before was told before
                stored = new HashSet<>(asOfSnapshot);
                apply(replay(dealer, snapshot.getFirst().sequence()), stored);
            }
            Set<String> expected = new HashSet<>(Set.of(stored(50, 0)));
            for (int number = 0; number < 50; number++) {
                for (int index = 0; index < number % 5 && number != 4; index++) {
                    expected.add(stored(number, index));
                }
            }
            assertThat(stored).isEqualTo(expected);
        }
    }

    @Test
    void givenRequestsThatAreNone_whenSent_thenTheNextOneIsAnswered() throws Exception {
        put(server.server().cache(), chain(0, 1));
        ZMQ.Socket dealer = dealer(server);
        dealer.send("x");
        dealer.send(new byte[0]);
        dealer.sendMore(new byte[0]);
        dealer.send(new byte[7]);
        List<Told> all = replay(dealer, 0);
        while (all.isEmpty()) {
            all = replay(dealer, 0);
        }
        assertThat(all).hasSize(1);
        assertThat(replay(dealer, 1)).isEmpty();
        ask(dealer, "snapshot".getBytes(US_ASCII));
        assertThat(new String(httpTestClient.get("/metrics").body(), US_ASCII))
                .contains("kv_events_published_total 1.0", "kv_events_asked_total{kind=\"snapshot\"} 1.0")
                .containsPattern("kv_events_asked_total\\{kind=\"replay\"\\} ([2-9]|[1-9]\\d+)\\.0")
                .contains("kv_events_overrun_total 0.0");
    }

    @Test
    void givenObjectsAndAnotherTenantsBlocks_whenStored_thenTheyAreNotPublished() throws Exception {
        KvCache cache = server.server().cache();
        httpTestClient.put("/v1/objects/k", "value");
        Namespace foreign = MODEL.toBuilder().tenant("other").build();
        cache.register(foreign);
        try (BlockWriter writer = cache.put(BlockChain.of(foreign, new int[4]), 0, 0, KvCache.NO_WAIT)) {
            writer.seal();
        }
        put(cache, chain(0, 1));
        ZMQ.Socket dealer = dealer(server);
        List<Told> all = replay(dealer, 0);
        while (all.isEmpty()) {
            all = replay(dealer, 0);
        }
        assertThat(all).hasSize(1);
        assertThat(all.getFirst().events()).hasSize(1);
        assertThat(all.getFirst().events().toString())
                .contains(Long.toUnsignedString(chain(0, 1).keyLo(0)));
    }

    @Test
    void givenANamespaceWithoutATenant_whenStored_thenItIsPublishedAsTheDefaultTenants() throws Exception {
        Namespace unnamed = MODEL.toBuilder().tenant("").build();
        BlockChain chain = BlockChain.of(unnamed, new int[4]);
        put(server.server().cache(), chain);
        ZMQ.Socket dealer = dealer(server);
        List<Told> all = replay(dealer, 0);
        for (int tries = 0; all.isEmpty() && tries < 1000; tries++) {
            Pause.briefly();
            all = replay(dealer, 0);
        }
        assertThat(all.toString()).contains(Long.toUnsignedString(chain.keyLo(0)));
        try (SseTestClient events =
                new SseTestClient(httpTestClient, httpTestClient.request("/v1/events?from=oldest"))) {
            assertThat(Objects.requireNonNull(events.next()).data().get("key").stringValue())
                    .isEqualTo(new BlockKey(chain.keyHi(0), chain.keyLo(0)).toString());
        }
        assertThat(new String(httpTestClient.get("/v1/stats").body(), US_ASCII))
                .contains("\"name\":\"m\",\"tenant\":\"default\"");
    }

    @Test
    void givenValuesUnderAnEnginesHashes_whenStored_thenTheyArePublishedAsBlocks() throws Exception {
        KvCache cache = server.server().cache();
        Namespace tier = Namespace.builder("llama")
                .layout("vllm-tier/2 tp=1 tokens=16 blocks=1")
                .build();
        cache.register(tier);
        byte[] key = HexFormat.of().parseHex(FIRST + "00000000");
        cache.storeObject(tier, key, MemorySegment.ofArray(new byte[100]), KvCache.NO_WAIT);
        httpTestClient.put("/v1/objects/plain", "value");
        httpTestClient.put("/v1/objects/vllm@m@1@0@00ff01@" + SECOND, "value");
        cache.dropObject(tier, key);
        ZMQ.Socket dealer = dealer(server);
        List<Told> all = replay(dealer, 0);
        for (int tries = 0; !all.toString().contains("Removed") && tries < 1000; tries++) {
            Pause.briefly();
            all = replay(dealer, 0);
        }
        String known = ",\"locality\":\"LOCAL\",\"ownership\":\"kvcache\"}";
        assertThat(all.stream().flatMap(told -> told.events().stream()).map(Object::toString))
                .containsExactly(
                        "{\"type\":\"BlockStored\",\"block_hashes\":[" + FIRST_EVENT
                                + "],\"parent_block_hash\":null,\"token_ids\":[],\"block_size\":16,\"lora_id\":null,"
                                + "\"medium\":\"CPU\",\"lora_name\":null,\"group_idx\":0" + known,
                        "{\"type\":\"BlockStored\",\"block_hashes\":[" + SECOND_EVENT
                                + "],\"parent_block_hash\":null,\"token_ids\":[],\"block_size\":0,\"lora_id\":null,"
                                + "\"medium\":\"CPU\",\"lora_name\":null,\"group_idx\":null" + known,
                        "{\"type\":\"BlockRemoved\",\"block_hashes\":[" + FIRST_EVENT
                                + "],\"medium\":\"CPU\",\"group_idx\":0" + known);
        assertThat(all.getFirst().topic()).isEqualTo("kv@here@llama");
        try (SseTestClient events =
                new SseTestClient(httpTestClient, httpTestClient.request("/v1/events?from=oldest"))) {
            assertThat(Objects.requireNonNull(events.next()).data().toString())
                    .contains("\"object\":true", "\"engineHash\":\"" + FIRST_EVENT + "\"");
            assertThat(Objects.requireNonNull(events.next()).data().toString()).doesNotContain("engineHash");
        }
    }

    @Test
    void givenAServerThatCloses_whenSomethingHappenedJustBefore_thenItIsPublished() throws Exception {
        TestServer other = start(10);
        ZMQ.Socket subscriber = subscriber(other);
        subscriber.setReceiveTimeOut(50);
        for (int number = 0; ZMsg.recvMsg(subscriber) == null; number++) {
            put(other.server().cache(), chain(number, 1));
        }
        subscriber.setReceiveTimeOut(60_000);
        put(other.server().cache(), chain(999, 1));
        other.close();
        String last = Long.toUnsignedString(chain(999, 1).keyLo(0));
        Told told = live(subscriber);
        while (!told.toString().contains(last)) {
            told = live(subscriber);
        }
    }
}

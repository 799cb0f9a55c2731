package io.kvcache.transport.wire;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.CacheStats;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.ObjectHint;
import io.kvcache.core.RequestKind;
import io.kvcache.core.RequestLabel;
import io.kvcache.core.baseline.Baseline;
import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.AxisOrder;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.identity.Part;
import io.kvcache.core.identity.PartKind;
import io.kvcache.core.identity.RopeOrigin;
import io.kvcache.core.shm.SharedMemory.SharedMemoryFiles;
import io.kvcache.core.shm.StagingArea.StagingHeader;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.wire.Handshake.Challenge;
import io.kvcache.transport.wire.Handshake.Hello;
import io.kvcache.transport.wire.Handshake.Proof;
import io.kvcache.transport.wire.Handshake.Welcome;
import io.kvcache.transport.wire.SharedMemoryCodec.FabricDescriptor;
import io.kvcache.transport.wire.SharedMemoryCodec.StagingDescriptor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/// Frames as PROTOCOL.md has them, written out by hand: what another language speaks must be these bytes,
/// today and after every change.
@Tag(Baseline.RECORDED_TAG)
final class GoldenFramesTest {

    private static final HexFormat HEX = HexFormat.of();

    private static String hex(OutboundFrame frame) {
        return HEX.formatHex(RecordingSink.bytes(frame));
    }

    private static String spaceless(String hex) {
        return hex.replaceAll("\\s", "");
    }

    private static BodyReader body(String hex) throws ProtocolException {
        byte[] all = HEX.parseHex(spaceless(hex));
        return RecordingSink.frames(all).getFirst().reader();
    }

    private static final String HELLO = """
            4b564331 0100 0000 0100000000000000 55000000 00000000 00f2052a01000000
            0100 0000 10270000 0000000000000000 0000000000000000
            000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
            00000000000000000000000000000000
            0500 61636d6530 0400 766c6c6d
            """;

    private static Secret counting(int bytes) {
        byte[] counting = new byte[bytes];
        for (int i = 0; i < bytes; i++) {
            counting[i] = (byte) i;
        }
        return new Secret(counting);
    }

    private static Hello hello() {
        return new Hello(1, 0, 0, counting(32), Secret.zeros(16), 10_000, "acme0", "vllm");
    }

    @Test
    void givenHello_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        assertThat(hex(hello().frame(1, 5_000_000_000L))).isEqualTo(spaceless(HELLO));
        assertThat(Hello.read(body(HELLO))).isEqualTo(hello());
    }

    private static final String CHALLENGE = """
            4b564331 0100 0100 0100000000000000 30000000 00000000 0000000000000000
            0100 0100 00000000 0000000000000000
            000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
            """;

    @Test
    void givenAChallenge_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        Challenge challenge = new Challenge(1, true, 0, counting(32));
        assertThat(hex(challenge.frame(1))).isEqualTo(spaceless(CHALLENGE));
        assertThat(Challenge.read(body(CHALLENGE))).isEqualTo(challenge);
    }

    /// The HMACs were computed by Python's hmac module.
    @Test
    void givenASecret_whenProved_thenTheseProofs() {
        Secret secret = new Secret("sixteen bytes ok".getBytes(StandardCharsets.US_ASCII));
        Proof proof = new Proof(secret, hello(), new Challenge(1, true, 0, counting(32)));
        assertThat(HEX.formatHex(proof.clientProof().bytes()))
                .isEqualTo("a188c77fc84ccfa5cdae459939224df43e28f8e117125c936b8b191effd232d7");
        assertThat(HEX.formatHex(proof.serverProof().bytes()))
                .isEqualTo("c7b177d496e5a32a587e04bb6308e4b792046640e27a3f1061efcb04cd5af64d");
    }

    private static final String WELCOME = """
            4b564331 0200 0100 0200000000000000 40000000 00000000 0000000000000000
            0700000000000000 000102030405060708090a0b0c0d0e0f 10270000 00000000
            000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
            """;

    @Test
    void givenAWelcome_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        Welcome welcome = new Welcome(7, counting(16), 10_000, counting(32));
        assertThat(hex(welcome.frame(2))).isEqualTo(spaceless(WELCOME));
        assertThat(Welcome.read(body(WELCOME))).isEqualTo(welcome);
    }

    private static final String REGISTER = """
            4b564331 0800 0000 0300000000000000 43000000 00000000 0100000000000000
            01000000 00000000
            0100 6d  0100 72  0000  0000  0000  0200 c3a9  0100 73
            0200 0300 01 02 01 01 00040000 05000000 06000000 07000000 10000000 ffffffff 0000000000000000
            """;

    @Test
    void givenANamespace_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        BlockShape shape = new BlockShape(5, 1, 6, 7, 16, Dtype.BF16, AxisOrder.LAYER_KV_TOKEN_HEAD);
        Namespace namespace = Namespace.builder("m")
                .revision("r")
                .tenant("é")
                .salt("s")
                .part(new Part(2, 3, PartKind.WINDOW, 1024, shape, RopeOrigin.NONE))
                .build();
        BodyWriter to = new BodyWriter();
        NamespaceCodec.write(namespace, to);
        assertThat(hex(to.request(MessageType.REGISTER, 3, 1))).isEqualTo(spaceless(REGISTER));
        assertThat(NamespaceCodec.read(body(REGISTER))).isEqualTo(namespace);
    }

    private static final String EVENT = """
            4b564331 3100 0100 0400000000000000 48000000 00000000 0000000000000000
            0500000000000000 02 01 0000 09000000
            0102030405060708 1112131415161718 2122232425262728 3132333435363738
            0a000000 00000000 feffffffffffffff fdffffffffffffff
            """;

    @Test
    void givenAnEvent_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        CacheEvent event = new CacheEvent(
                5,
                EventKind.DROPPED,
                TierKind.HOST,
                9,
                0x0102030405060708L,
                0x1112131415161718L,
                0x2122232425262728L,
                0x3132333435363738L,
                10,
                -2,
                -3);
        BodyWriter to = new BodyWriter();
        EventCodec.write(event, to);
        assertThat(hex(to.reply(MessageType.EVENTS, 4))).isEqualTo(spaceless(EVENT));
        assertThat(EventCodec.read(body(EVENT))).isEqualTo(event);
    }

    @Test
    void givenStatistics_whenWrittenAndRead_thenTheSameAndOnlyOfKnownNamespaces() throws ProtocolException {
        Namespace mine = Namespace.objects("mine", "t");
        Namespace other = Namespace.objects("other", "t");
        NamespaceStats numbers = new NamespaceStats(mine, 21, 22, 23, 28, 24, 25, 26, 27);
        CacheStats stats = new CacheStats(
                new CacheStats.Memory(1, 2, 3, 4, 5),
                new CacheStats.Records(6, 7, 8),
                new CacheStats.Puts(9, 10, 11, 12, 13, 14, 0, 28, 0),
                new CacheStats.Removals(15, 16, 17, 29),
                18,
                19,
                List.of(new NamespaceStats(other, 1, 1, 1, 1, 1, 1, 1, 1), numbers));
        BodyWriter to = new BodyWriter();
        StatsCodec.write(stats, Map.of(mine, 3), to);
        assertThat(to.size()).isEqualTo(176 + 72);
        OutboundFrame frame = to.reply(MessageType.STATS, 1);
        byte[] all = RecordingSink.bytes(frame);
        ByteBuffer counted = ByteBuffer.wrap(all).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < 19; i++) {
            assertThat(counted.getLong(32 + 8 * i)).isEqualTo(i + 1);
        }
        assertThat(counted.getInt(32 + 172)).isEqualTo(1);
        assertThat(counted.getInt(32 + 176)).isEqualTo(3);
        CacheStats read = StatsCodec.read(RecordingSink.frames(all).getFirst().reader(), Map.of(3, mine));
        assertThat(read.namespaces()).containsExactly(numbers);
        assertThat(read.host()).isEqualTo(stats.host());
        assertThat(read.puts()).isEqualTo(stats.puts());
        assertThat(read.removals()).isEqualTo(stats.removals());
    }

    private static final String REFUSAL = """
            4b564331 6300 0100 0500000000000000 06000000 00000000 0100000000000000
            0400 6e6f7065
            """;

    private static final String SHARED = """
            4b564331 0500 0100 0900000000000000 2c000000 00000000 0000000000000000
            efcdab8967452301
            0e00 2f6465762f73686d2f73746f7265
            0700 736c6f74732d31
            0900 7265636f7264732d31
            """;

    @Test
    void givenSharedFiles_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        SharedMemoryFiles files =
                new SharedMemoryFiles("/dev/shm/store", "slots-1", "records-1", 0x0123_4567_89AB_CDEFL);
        BodyWriter reply = new BodyWriter();
        SharedMemoryCodec.write(files, reply);
        assertThat(hex(reply.reply(MessageType.SHARE, 9))).isEqualTo(spaceless(SHARED));
        assertThat(SharedMemoryCodec.read(body(SHARED))).isEqualTo(files);
    }

    @Test
    void givenAServerThatSharesMemory_whenItAnswersHello_thenItsCapabilityIsBitZero() throws ProtocolException {
        Challenge challenge = new Challenge(1, true, Hello.SHARED_MEMORY, counting(32));
        assertThat(hex(challenge.frame(1)).substring(80, 96)).isEqualTo("0100000000000000");
        assertThat(challenge.hasCapability(Hello.SHARED_MEMORY)).isTrue();
        assertThat(Challenge.read(body(CHALLENGE)).hasCapability(Hello.SHARED_MEMORY))
                .isFalse();
    }

    @Test
    void givenCapabilitiesOfServers_whenTold_thenEachHasItsBitForEver() {
        assertThat(List.of(Hello.SHARED_MEMORY, Challenge.FABRIC, Challenge.STAGING))
                .containsExactly(1L << 0, 1L << 1, 1L << 2);
    }

    private static final String HINT_OBJECTS = """
            4b564331 2e00 0000 0d00000000000000 35000000 00000000 0000000000000000
            03000000 02000000
            03 000000 00000000 0000000000000000
            02 01 0000 05000000 efcdab8967452301
            02000000 6b31 03000000 6b3232
            """;

    @Test
    void givenAHintAboutObjects_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        ObjectHint label = new ObjectHint.Label(new RequestLabel(RequestKind.AGENT, 0x0123_4567_89AB_CDEFL, 5, true));
        BodyWriter request = new BodyWriter().i32(3);
        HintCodec.write(label, List.of("k1".getBytes(US_ASCII), "k22".getBytes(US_ASCII)), request);
        assertThat(hex(request.request(MessageType.HINT_OBJECTS, 13, 0))).isEqualTo(spaceless(HINT_OBJECTS));
        BodyReader body = body(HINT_OBJECTS);
        assertThat(body.count("namespace")).isEqualTo(3);
        HintCodec.DecodedObjectHint decodedObjectHint = HintCodec.readObjects(body);
        assertThat(decodedObjectHint.hint()).isEqualTo(label);
        assertThat(decodedObjectHint.keys()).containsExactly("k1".getBytes(US_ASCII), "k22".getBytes(US_ASCII));
    }

    private static final String STAGED = """
            4b564331 0700 0100 0a00000000000000 1b000000 00000000 0000000000000000
            0000000400000000 efcdab8967452301
            0900 73746167652d312d30
            """;

    @Test
    void givenStagingMemory_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        StagingDescriptor place =
                new StagingDescriptor(64 << 20, new StagingHeader(0x0123_4567_89AB_CDEFL), "stage-1-0");
        BodyWriter reply = new BodyWriter();
        place.write(reply);
        assertThat(hex(reply.reply(MessageType.STAGE, 10))).isEqualTo(spaceless(STAGED));
        assertThat(StagingDescriptor.read(body(STAGED))).isEqualTo(place);
    }

    private static final String FABRIC = """
            4b564331 0600 0100 0b00000000000000 1d000000 00000000 0000000000000000
            0010000000000000 0000000400000000 02000000 03000000 a1a2 b1b2b3
            """;

    @Test
    void givenAPlaceOnAFabric_whenWrittenAndRead_thenTheseBytes() throws ProtocolException {
        BodyWriter reply = new BodyWriter();
        new FabricDescriptor(4096, 64 << 20, HEX.parseHex("a1a2"), HEX.parseHex("b1b2b3")).write(reply);
        assertThat(hex(reply.reply(MessageType.FABRIC, 11))).isEqualTo(spaceless(FABRIC));
        FabricDescriptor read = FabricDescriptor.read(body(FABRIC));
        assertThat(read.base()).isEqualTo(4096);
        assertThat(read.bytes()).isEqualTo(64 << 20);
        assertThat(HEX.formatHex(read.address())).isEqualTo("a1a2");
        assertThat(HEX.formatHex(read.key())).isEqualTo("b1b2b3");
    }

    @Test
    void givenARefusal_whenWritten_thenTheseBytes() {
        assertThat(hex(BodyWriter.errorReply(99, 5, Status.UNSUPPORTED, "nope")))
                .isEqualTo(spaceless(REFUSAL));
    }

    @Test
    void givenALongerBody_whenRead_thenWhatIsNotKnownIsIgnored() throws ProtocolException {
        byte[] longer = Arrays.copyOf(HEX.parseHex(spaceless(CHALLENGE)), 32 + 48 + 20);
        longer[16] = 48 + 20;
        assertThat(Challenge.read(RecordingSink.frames(longer).getFirst().reader())
                        .proofRequired())
                .isTrue();
    }

    @Test
    void givenAShorterBody_whenRead_thenTheMissingFieldIsNamed() {
        byte[] shorter = Arrays.copyOf(HEX.parseHex(spaceless(CHALLENGE)), 32 + 20);
        shorter[16] = 20;
        assertThatThrownBy(() ->
                        Challenge.read(RecordingSink.frames(shorter).getFirst().reader()))
                .isInstanceOf(ProtocolException.class)
                .hasMessageContainingAll("nonce", "32", "4");
    }

    @Test
    void givenAllTypesAndStatuses_whenCounted_thenNoNumberHasChanged() {
        assertThat(Arrays.stream(MessageType.values()).map(type -> type + "=" + type.code()))
                .containsExactly(
                        "ERROR=0",
                        "HELLO=1",
                        "AUTH=2",
                        "PING=3",
                        "RENEW=4",
                        "SHARE=5",
                        "FABRIC=6",
                        "STAGE=7",
                        "REGISTER=8",
                        "DROP_NAMESPACE=9",
                        "REGION=12",
                        "DROP_REGION=13",
                        "VIEW=14",
                        "EXECUTE=15",
                        "CHAIN=16",
                        "MATCH=17",
                        "ACQUIRE=18",
                        "PROGRESS=19",
                        "READ=20",
                        "DATA=21",
                        "RELEASE=22",
                        "DROP_CHAIN=23",
                        "HINT=24",
                        "PLACES=25",
                        "TOUCH=26",
                        "COPY=27",
                        "READ_RANGE=28",
                        "RESERVE=32",
                        "FILL=33",
                        "ABANDON=34",
                        "PUT=35",
                        "FILL_STAGED=36",
                        "PUT_STAGED=37",
                        "RESERVE_OBJECT=40",
                        "GET_OBJECT=41",
                        "CONTAINS_OBJECT=42",
                        "DROP_OBJECT=43",
                        "PUT_OBJECT=44",
                        "PUT_OBJECT_STAGED=45",
                        "HINT_OBJECTS=46",
                        "MATCH_OBJECTS=47",
                        "STATS=48",
                        "EVENTS=49",
                        "SNAPSHOT=50",
                        "FLUSH=51",
                        "LIST_OBJECTS=52",
                        "DROP_OBJECTS=53");
        assertThat(Arrays.stream(Status.values()).map(status -> status + "=" + status.code()))
                .containsExactly(
                        "OK=0",
                        "UNSUPPORTED=1",
                        "INVALID=2",
                        "UNAUTHORIZED=3",
                        "FORBIDDEN=4",
                        "GONE=5",
                        "CORRUPT=6",
                        "BUSY=7",
                        "FAILED=8");
        assertThat(Status.of(77)).isEqualTo(Status.FAILED);
        assertThat(MessageType.of(77)).isNull();
    }
}

package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.tiers.TieredKvCache;
import io.kvcache.tiers.options.StagingLimits;
import io.kvcache.transport.net.RecordingSink;
import io.kvcache.transport.shm.ShmDirectory;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;
import io.kvcache.transport.wire.SharedMemoryCodec.StagedRange;
import io.kvcache.transport.wire.SharedMemoryCodec.StagingDescriptor;
import io.kvcache.transport.wire.Status;
import java.io.IOException;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.List;

/// A store with blocks of 32 bytes whose clients may write what they put into memory that it shares: two
/// pages each, and five in all.
final class StagedEndpointFixture implements AutoCloseable {

    static final int PAGE = 4096;

    static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 1, 8, 1, Dtype.BF16));

    /// A block, and its checksum, which was computed outside Java.
    static final byte[] BYTES = bytes("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");

    static final int CHECKSUM = 0x86A4_C273;

    static final String STAGE = """
            4b564331 0700 0000 0600000000000000 08000000 00000000 0000000000000000
            0020000000000000
            """;

    private final ShmDirectory folder = ShmDirectory.make();
    private final TieredKvCache store = store(folder, new StagingLimits(2 * PAGE, 5 * PAGE));
    private final Endpoint endpoint = new Endpoint(store, EndpointOptions.DEFAULTS, System::nanoTime);
    private final BlockChain chain = BlockChain.of(SPACE, new int[] {1, 2});

    static TieredKvCache store(ShmDirectory folder, StagingLimits limits) {
        return TieredKvCache.builder()
                .hostBytes(32 << 20)
                .failOnLeak(true)
                .prefaultInBackground(false)
                .shareMemory(folder.path())
                .stagingLimits(limits)
                .build();
    }

    TieredKvCache store() {
        return store;
    }

    Endpoint endpoint() {
        return endpoint;
    }

    BlockChain chain() {
        return chain;
    }

    /// The names of what clients write into.
    List<String> staged() throws IOException {
        return folder.files().stream().filter(name -> name.startsWith("stage-")).toList();
    }

    static byte[] bytes(String hex) {
        return HexFormat.of().parseHex(hex.replaceAll("\\s", ""));
    }

    /// A client that has told of the chain, in slot 5.
    TestClient testClient() throws ProtocolException {
        TestClient testClient = TestClient.connect(endpoint);
        testClient.send(MessageType.CHAIN, TestClient.chain(5, testClient.register(SPACE), chain));
        return testClient;
    }

    /// A session's staging memory, as its client sees it.
    record StagingFile(StagingDescriptor place, Path file) {

        void write(long offset, byte[] bytes) throws IOException {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                channel.write(ByteBuffer.wrap(bytes), PAGE + offset);
            }
        }

        void truncate(long bytes) throws IOException {
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE)) {
                channel.truncate(bytes);
            }
        }
    }

    StagingFile staging(TestClient testClient) throws ProtocolException {
        StagingDescriptor place = StagingDescriptor.read(
                testClient.request(bytes(STAGE)).getFirst().reader());
        return new StagingFile(place, folder.path().resolve(place.file()));
    }

    /// Puts the first block.
    static RecordingSink.ReceivedFrame put(TestClient testClient, StagedRange staged) throws ProtocolException {
        return testClient.request(
                MessageType.PUT_STAGED,
                staged.write(TestClient.chainReference(5, 2).i32(0).i32(0)));
    }

    /// Reserves room for the first block.
    static long reserve(TestClient testClient) throws ProtocolException {
        BodyWriter body = TestClient.chainReference(5, 2).i32(0).i32(0).i64(0);
        return testClient.request(MessageType.RESERVE, body).reader().skip(8).i64("reservation");
    }

    static void assertRefused(RecordingSink.ReceivedFrame reply, Status status, String... words)
            throws ProtocolException {
        assertThat(reply.header().status()).isEqualTo(status);
        assertThat(reply.reader().text("text")).contains(words);
    }

    /// The first block is there, and right.
    void assertStored() {
        try (BlockTable table = store.acquire(chain)) {
            assertThat(table.readyBlocks()).isEqualTo(1);
            assertThat(table.segment(0).toArray(ValueLayout.JAVA_BYTE)).isEqualTo(BYTES);
        }
    }

    /// Ends it, and looks whether anything is left.
    @Override
    public void close() throws IOException {
        endpoint.close();
        assertThat(store.stats().openTables()).isZero();
        assertThat(staged()).as("no session, no staging memory").isEmpty();
        store.validate();
        store.close();
        assertThat(folder.files()).isEmpty();
        folder.close();
    }
}

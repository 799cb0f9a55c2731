package io.kvcache.transport.endpoint;

import static io.kvcache.transport.endpoint.HexFrames.assertAnswers;
import static io.kvcache.transport.endpoint.HexFrames.u64;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.shm.SharedMemory;
import io.kvcache.transport.net.DisconnectReason;
import io.kvcache.transport.wire.ProtocolException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Objects;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/// What goes over the wire to a client that reads blocks and objects where they lie, byte by byte in both
/// directions, written out by hand but for what the store says of its own: handles and places.
final class SharedFramesTest {

    private static final byte[] KEY = "key".getBytes(StandardCharsets.US_ASCII);

    /// Of the bytes, and of the bytes with the object's key behind them.
    private static final String SUM = "73c2a486";

    private static final String OBJECT_SUM = "b18cd5a3";

    private final StagedEndpointFixture serving = new StagedEndpointFixture();
    private final SharedMemory memory = Objects.requireNonNull(serving.store().sharedMemory());

    @AfterEach
    void close() throws IOException {
        serving.close();
    }

    private static MemorySegment bytes(Arena arena) {
        return arena.allocateFrom(ValueLayout.JAVA_BYTE, StagedEndpointFixture.BYTES);
    }

    @Test
    void givenBlocks_whenAcquiredInPlace_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = serving.testClient();
        String first;
        String second;
        String firstPlace;
        String secondPlace;
        try (Arena arena = Arena.ofConfined()) {
            List<MemorySegment> blocks = List.of(bytes(arena), bytes(arena));
            assertThat(serving.store()
                            .putAll(serving.chain(), 0, blocks, KvCache.NO_WAIT)
                            .stored())
                    .isEqualTo(2);
        }
        try (BlockTable table = serving.store().acquire(serving.chain())) {
            first = u64(table.handle(0));
            second = u64(table.handle(1));
            firstPlace = u64(memory.offsetOf(table.segment(0)));
            secondPlace = u64(memory.offsetOf(table.segment(1)));
        }
        // ACQUIRE: from block 0, none sent, no time, places 1; lease 1, two ready, end 2, none sent, two handles
        assertAnswers(testClient, """
                4b564331 1200 0000 0500000000000000 19000000 00000000 0000000000000000
                05 000000 02000000 00000000 00000000 0000000000000000 01
                """, """
                4b564331 1200 0100 0500000000000000 2c000000 00000000 0000000000000000
                0100000000000000 02000000 02000000 00000000
                02000000 00000000 %s %s
                """.formatted(first, second));
        // PLACES: of lease 1, from block 0, two of them
        assertAnswers(testClient, """
                4b564331 1900 0000 0600000000000000 10000000 00000000 0000000000000000
                0100000000000000 00000000 02000000
                """, """
                4b564331 1900 0100 0600000000000000 18000000 00000000 0000000000000000
                02000000 00000000 %s %s
                """.formatted(first, second));
        // PLACES 2: offsets and checksums
        assertAnswers(testClient, """
                4b564331 1900 0000 0700000000000000 11000000 00000000 0000000000000000
                0100000000000000 00000000 02000000 02
                """, """
                4b564331 1900 0100 0700000000000000 28000000 00000000 0000000000000000
                02000000 00000000
                %s %s 00000000
                %s %s 00000000
                """.formatted(firstPlace, SUM, secondPlace, SUM));
        // PLACES of no block: the lease is held
        assertAnswers(testClient, """
                4b564331 1900 0000 0800000000000000 10000000 00000000 0000000000000000
                0100000000000000 00000000 00000000
                """, """
                4b564331 1900 0100 0800000000000000 08000000 00000000 0000000000000000
                00000000 00000000
                """);
        // TOUCH: one that is here and one that is not; no reply
        assertAnswers(testClient, """
                4b564331 1a00 0000 0000000000000000 18000000 00000000 0000000000000000
                02000000 00000000 %s ffffffff01000000
                """.formatted(second), "");
        testClient.end(DisconnectReason.PEER_CLOSED);
    }

    @Test
    void givenAnObject_whenAskedWhereItLies_thenTheseBytesBothWays() throws ProtocolException {
        TestClient testClient = serving.testClient();
        String handle;
        String place;
        try (Arena arena = Arena.ofConfined()) {
            assertThat(serving.store().storeObject(StagedEndpointFixture.SPACE, KEY, bytes(arena), KvCache.NO_WAIT))
                    .isTrue();
        }
        try (ObjectView view = Objects.requireNonNull(serving.store().getObject(StagedEndpointFixture.SPACE, KEY))) {
            handle = u64(view.handle());
            place = u64(memory.offsetOf(view.segments().getFirst()));
        }
        // GET_OBJECT: not sent, places 1; lease 1, 32 bytes, none sent; checksum, handle, one piece
        assertAnswers(testClient, """
                4b564331 2900 0000 0300000000000000 1b000000 00000000 0000000000000000
                01000000 03000000 00 01 000000000000 0000000000000000 6b6579
                """, """
                4b564331 2900 0100 0300000000000000 38000000 00000000 0000000000000000
                0100000000000000 2000000000000000 00 000000
                %s %s 01000000 00000000
                %s 2000000000000000
                """.formatted(OBJECT_SUM, handle, place));
        testClient.end(DisconnectReason.PEER_CLOSED);
    }
}

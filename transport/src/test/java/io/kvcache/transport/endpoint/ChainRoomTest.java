package io.kvcache.transport.endpoint;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.store.ChunkedCrc;
import io.kvcache.transport.link.CloseReason;
import io.kvcache.transport.link.Loopback;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Payload;
import io.kvcache.transport.wire.Status;
import io.kvcache.transport.wire.Violation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/// How much of the heap the chains that clients tell may take.
final class ChainRoomTest {

    private static final EndpointOptions OPTIONS = Serving.OPTIONS.withHeap(
            new HeapLimits(100, 200L * ChainSlots.BLOCK_BYTES, 300L * ChainSlots.BLOCK_BYTES, 1, 1));

    private final Serving serving = new Serving();

    @BeforeEach
    void register() {
        serving.store().register(Serving.SPACE);
    }

    @AfterEach
    void nothingIsLeft() {
        serving.requireNothingLeft();
    }

    private static void tell(Peer peer, int slot, int blocks) throws Violation {
        peer.tell(MessageType.CHAIN, Peer.chain(slot, peer.register(Serving.SPACE), Serving.chain(slot, blocks)));
    }

    private static void require(Peer peer, int slot, Status status, String text) throws Violation {
        Loopback.Whole reply = peer.ask(MessageType.MATCH, Peer.about(slot, 1));
        assertThat(reply.header().status()).isEqualTo(status);
        if (status != Status.OK) {
            assertThat(reply.reader().text("text")).contains(text);
        }
    }

    @Test
    void givenAChainThatIsTooLong_whenSpokenOf_thenRefusedWithTheLimitAndTheConnectionGoesOn() throws Violation {
        try (Endpoint endpoint = serving.open(OPTIONS)) {
            Peer peer = Peer.welcomed(endpoint);
            tell(peer, 0, 101);
            require(peer, 0, Status.INVALID, "a chain of 101 blocks; allowed: 0 to 100");
            tell(peer, 0, 100);
            require(peer, 0, Status.OK, "");
            BodyWriter grown = new BodyWriter().u8(0).u8(0).u16(0).i32(peer.register(Serving.SPACE));
            peer.tell(MessageType.CHAIN, grown.i32(100).i32(1).i64(1).i64(1).i64(1));
            require(peer, 0, Status.INVALID, "a chain of 101 blocks");
            peer.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAConnectionWithManyChains_whenOneMoreIsTold_thenTheOneUsedLeastRecentlyIsGivenUp() throws Violation {
        try (Endpoint endpoint = serving.open(OPTIONS)) {
            Peer peer = Peer.welcomed(endpoint);
            tell(peer, 0, 100);
            tell(peer, 1, 100);
            require(peer, 0, Status.OK, "");
            tell(peer, 2, 1);
            require(peer, 2, Status.OK, "");
            require(peer, 0, Status.OK, "");
            require(peer, 1, Status.BUSY, "given up for others");
            BodyWriter forked = new BodyWriter().u8(3).u8(1).u16(0).i32(peer.register(Serving.SPACE));
            peer.tell(MessageType.CHAIN, forked.i32(1).i32(0));
            require(peer, 3, Status.BUSY, "given up for others");
            tell(peer, 1, 99);
            for (int slot = 0; slot < 3; slot++) {
                require(peer, slot, Status.OK, "");
            }
            peer.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenAChainTooLongForAConnection_whenTold_thenItIsBusyAndTheOthersStay() throws Violation {
        HeapLimits limits = new HeapLimits(300, 200L * ChainSlots.BLOCK_BYTES, 300L * ChainSlots.BLOCK_BYTES, 1, 1);
        try (Endpoint endpoint = serving.open(Serving.OPTIONS.withHeap(limits))) {
            Peer peer = Peer.welcomed(endpoint);
            tell(peer, 0, 200);
            tell(peer, 1, 201);
            require(peer, 1, Status.BUSY, "a chain of 9648 bytes; allowed for all of this connection: 9600");
            require(peer, 0, Status.OK, "");
            peer.end(CloseReason.PEER_CLOSED);
        }
    }

    @Test
    void givenConnectionsThatTookAll_whenAnotherTells_thenTheOneThatTookMostGivesUp() throws Violation {
        try (Endpoint endpoint = serving.open(OPTIONS)) {
            Peer first = Peer.welcomed(endpoint);
            tell(first, 0, 100);
            tell(first, 1, 100);
            Peer second = Peer.welcomed(endpoint);
            tell(second, 0, 100);
            tell(second, 1, 1);
            require(second, 0, Status.OK, "");
            require(second, 1, Status.OK, "");
            require(first, 0, Status.BUSY, "given up for others");
            require(first, 1, Status.OK, "");
            tell(first, 0, 100);
            require(first, 0, Status.OK, "");
            require(first, 1, Status.OK, "");
            require(second, 0, Status.BUSY, "given up for others");
            require(second, 1, Status.OK, "");
            first.end(CloseReason.PEER_CLOSED);
            assertThat(endpoint.service().common().chains().taken()).isEqualTo(ChainSlots.BLOCK_BYTES);
            second.end(CloseReason.PEER_CLOSED);
            assertThat(endpoint.service().common().chains().taken()).isZero();
        }
    }

    @Test
    @Timeout(180)
    void givenConnectionsThatTellAtOnce_whenEachTakesFromTheOthers_thenNoMoreIsTakenThanAllowedAndNothingStays()
            throws Exception {
        try (Endpoint endpoint = serving.open(OPTIONS);
                ExecutorService threads = Executors.newFixedThreadPool(4)) {
            List<Callable<Void>> tellers = Collections.nCopies(4, () -> {
                Peer peer = Peer.welcomed(endpoint);
                for (int round = 0; round < 300; round++) {
                    tell(peer, round % ChainSlots.COUNT, 1 + round * 7 % 100);
                    assertThat(endpoint.service().common().chains().taken())
                            .isBetween(0L, 300L * ChainSlots.BLOCK_BYTES);
                }
                peer.end(CloseReason.PEER_CLOSED);
                return null;
            });
            for (Future<Void> teller : threads.invokeAll(tellers)) {
                teller.get();
            }
            assertThat(endpoint.service().common().chains().taken()).isZero();
        }
    }

    @Test
    void givenAPutOfAChainWithoutRoom_whenItsBytesCome_thenTheyAreThrownAwayAndItIsRefused() throws Violation {
        try (Endpoint endpoint = serving.open(OPTIONS)) {
            Peer peer = Peer.welcomed(endpoint);
            tell(peer, 0, 101);
            MemorySegment bytes = Arena.ofAuto().allocate(1 << 16);
            BodyWriter body =
                    Peer.about(0, 1).i32(0).i32(0).i32(ChunkedCrc.of(bytes)).i32(0);
            List<Loopback.Whole> replies = peer.ask(body.request(MessageType.PUT, 7, 0, Payload.of(List.of(bytes))));
            assertThat(replies).hasSize(1);
            assertThat(replies.getFirst().header().status()).isEqualTo(Status.INVALID);
            assertThat(peer.ask(MessageType.PING, new BodyWriter()).header().status())
                    .isEqualTo(Status.OK);
            peer.end(CloseReason.PEER_CLOSED);
        }
    }
}

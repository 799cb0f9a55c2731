package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.RecordHandle;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A block that comes back after a disk has forgotten it is no new one.
final class DiskEvictionReturnTest {

    private static final BlockShape SHAPE = BlockShape.kv(1, 8, 128, 4, Dtype.BF16);
    private static final Namespace SPACE = Namespace.of("m", SHAPE);
    private static final BlockChain CHAIN = BlockChain.of(SPACE, new int[] {1, 2, 3, 4});
    private static final BlockChain OTHER = BlockChain.of(SPACE, new int[] {5, 6, 7, 8});
    private static final long LIMIT = 1 << 20;

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry entry = store.register(SPACE);
    private long places;

    @BeforeEach
    void writeABlockThatWasUsed() {
        assertThat(tierPort.addDisk(SHAPE.bytes())).as("room for one").isZero();
        tierPort.configureAdmission(AdmissionKind.VALUE, LIMIT, LIMIT, 2); // a block has to be used in one of two cases
        tierPort.endRecovery();
        putAndUse(CHAIN);
        evictFromHost();
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private void putAndUse(BlockChain chain) {
        put(chain);
        assertThat(write()).as("nobody has used it").isZero();
        use(chain);
        assertThat(write()).isEqualTo(1);
    }

    private void put(BlockChain chain) {
        PutReservation putReservation = store.reserve(entry, chain, 0, false);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.seal(putReservation.record(), 7);
    }

    private void use(BlockChain chain) {
        long handle = store.lookup().pinKey(chain.keyHi(0), chain.keyLo(0));
        assertThat(RecordHandle.isFound(handle)).isTrue();
        store.lookup().unpin(RecordHandle.record(handle));
        store.validate(); // which is when uses are told
    }

    private int write() {
        int written = 0;
        for (TierPort.PendingWrite next = tierPort.nextWrite(0); next != null; next = tierPort.nextWrite(0)) {
            tierPort.onWritten(next.record(), 0, ++places);
            written++;
        }
        return written;
    }

    private void evictFromHost() {
        Namespace large = Namespace.of("large", BlockShape.kv(256, 8, 128, 64, Dtype.BF16));
        BlockChain chain = BlockChain.of(large, IntStream.range(0, 64).toArray());
        PutReservation putReservation = store.reserve(store.register(large), chain, 0, false);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.abandon(putReservation.record());
        assertThat(isKnown(CHAIN)).as("on disk").isTrue();
    }

    private boolean isKnown(BlockChain chain) {
        return store.lookup().matchKnown(chain, 0) > 0;
    }

    @Test
    void givenABlockOnDiskAlone_whenTheDiskIsLostAndItIsPutAgain_thenItIsWrittenAtOnce() {
        tierPort.onLost(0);
        assertThat(isKnown(CHAIN)).isFalse();
        put(CHAIN);
        assertThat(write()).isEqualTo(1);
    }

    @Test
    void givenABlockOnDiskAlone_whenItHasToGoForAnotherAndIsPutAgain_thenItIsWrittenAtOnce() {
        putAndUse(OTHER);
        assertThat(isKnown(CHAIN)).isFalse();
        put(CHAIN);
        assertThat(write()).isEqualTo(1);
    }
}

package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.ReclaimCandidates;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tree.DiskAddress;
import java.util.Objects;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// A block that is written on one disk while the one above it is still on its way to another lies on its
/// disk without counting. What happens to it there is not forgotten.
final class AncestorRewritesTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 4, Dtype.BF16));
    private static final int CHILDS_DISK = 0;
    private static final int PARENTS_DISK = 1;
    private static final long PLACE = 7;
    private static final long ELSEWHERE = 9;

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private TierPort.PendingWrite parent;
    private TierPort.PendingWrite child;

    @BeforeEach
    void writeTheChildFirst() {
        assertThat(tierPort.addDisk(1 << 20)).isEqualTo(CHILDS_DISK);
        assertThat(tierPort.addDisk(1 << 20)).isEqualTo(PARENTS_DISK);
        tierPort.configureAdmission(AdmissionKind.ALWAYS, 1 << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
        NamespaceEntry entry = store.register(SPACE);
        BlockChain chain = BlockChain.of(SPACE, IntStream.range(0, 8).toArray());
        for (int index = 0; index < 2; index++) {
            store.seal(store.reserve(entry, chain, index, false).record(), index);
        }
        parent = Objects.requireNonNull(tierPort.nextWrite(PARENTS_DISK));
        child = Objects.requireNonNull(tierPort.nextWrite(CHILDS_DISK));
        tierPort.onWritten(child.record(), CHILDS_DISK, PLACE);
        assertThat(placeOf(child)).isEqualTo(-1);
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private long placeOf(TierPort.PendingWrite write) {
        return store.records().diskAddress(write.record());
    }

    private void endTheParent() {
        tierPort.onWritten(parent.record(), PARENTS_DISK, 3);
        assertThat(placeOf(parent)).isEqualTo(DiskAddress.of(PARENTS_DISK, 3));
    }

    /// An offer of the child's copy alone.
    private record Offer(TierBlock block, boolean kept) implements ReclaimCandidates {

        @Override
        public int size() {
            return 1;
        }

        @Override
        public long keyHi(int index) {
            return block.keyHi();
        }

        @Override
        public long keyLo(int index) {
            return block.keyLo();
        }

        @Override
        public long address(int index) {
            return PLACE;
        }

        @Override
        public boolean keep(int index) {
            return kept;
        }
    }

    @Test
    void givenACopyAhead_whenTheBlockAboveIsWritten_thenItCounts() {
        endTheParent();
        assertThat(placeOf(child)).isEqualTo(DiskAddress.of(CHILDS_DISK, PLACE));
    }

    @Test
    void givenACopyAhead_whenItsSpanIsReclaimedWithoutIt_thenItWasNotWritten() {
        long unwritten = tierPort.unwrittenCount();
        tierPort.onReclaim(CHILDS_DISK, new Offer(child.block(), false));
        endTheParent();
        assertThat(placeOf(child)).isEqualTo(-1);
        assertThat(tierPort.unwrittenCount()).isGreaterThan(unwritten);
    }

    @Test
    void givenACopyAhead_whenReclaimingKeepsIt_thenItCountsWhereItLiesThen() {
        tierPort.onReclaim(CHILDS_DISK, new Offer(child.block(), true));
        tierPort.onMoved(CHILDS_DISK, child.block(), PLACE, ELSEWHERE);
        endTheParent();
        assertThat(placeOf(child)).isEqualTo(DiskAddress.of(CHILDS_DISK, ELSEWHERE));
    }

    @Test
    void givenACopyAhead_whenItIsLost_thenItWasNotWritten() {
        tierPort.onLost(CHILDS_DISK, child.block(), PLACE);
        endTheParent();
        assertThat(placeOf(child)).isEqualTo(-1);
    }

    @Test
    void givenACopyAhead_whenItsDiskIsOut_thenItWasNotWritten() {
        tierPort.onLost(CHILDS_DISK);
        endTheParent();
        assertThat(placeOf(child)).isEqualTo(-1);
    }
}

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
import io.kvcache.core.tree.RecordHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Under admission by value a copy is written again, when its span is reclaimed, only if it was used since the
/// last time.
final class ReclaimByUseTest {

    private static final Namespace SPACE = Namespace.of("m", BlockShape.kv(1, 8, 128, 4, Dtype.BF16));
    private static final BlockChain CHAIN =
            BlockChain.of(SPACE, IntStream.range(0, 16).toArray());
    private static final int BLOCKS = 3;

    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 100, PolicyKind.LRU, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry entry = store.register(SPACE);
    private final List<TierPort.PendingWrite> written = new ArrayList<>();

    @BeforeEach
    void writeAChain() {
        assertThat(tierPort.addDisk(1 << 20)).isZero();
        tierPort.configureAdmission(AdmissionKind.VALUE, 1 << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
        for (int index = 0; index < BLOCKS; index++) {
            store.seal(store.reserve(entry, CHAIN, index, false).record(), index);
        }
        for (TierPort.PendingWrite next = tierPort.nextWrite(0); next != null; next = tierPort.nextWrite(0)) {
            written.add(next);
            tierPort.onWritten(next.record(), 0, written.size());
        }
        assertThat(written).as("worth a write as long as nothing is known").hasSize(BLOCKS);
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private void use(int index) {
        long handle = store.lookup().pinKey(CHAIN.keyHi(index), CHAIN.keyLo(index));
        assertThat(RecordHandle.isFound(handle)).isTrue();
        store.lookup().unpin(RecordHandle.record(handle));
        store.seal(store.reserve(entry, CHAIN, BLOCKS, false).record(), BLOCKS); // which is when uses are told
    }

    /// Everything that was written, with room for all of it.
    private static final class Offer implements ReclaimCandidates {

        private final List<TierPort.PendingWrite> all;
        private final List<Long> kept = new ArrayList<>();

        Offer(List<TierPort.PendingWrite> all) {
            this.all = all;
        }

        private TierBlock block(int index) {
            return all.get(index).block();
        }

        @Override
        public int size() {
            return all.size();
        }

        @Override
        public long keyHi(int index) {
            return block(index).keyHi();
        }

        @Override
        public long keyLo(int index) {
            return block(index).keyLo();
        }

        @Override
        public long address(int index) {
            return index + 1L;
        }

        @Override
        public boolean keep(int index) {
            return kept.add(address(index));
        }
    }

    private List<Long> kept() {
        Offer offer = new Offer(written);
        tierPort.onReclaim(0, offer);
        return offer.kept;
    }

    private boolean onDisk(int index) {
        return store.records().diskAddress(written.get(index).record()) != -1;
    }

    @Test
    void givenNothingUsed_whenReclaimed_thenNothingIsWrittenAgain() {
        assertThat(kept()).isEmpty();
        assertThat(IntStream.range(0, BLOCKS).filter(this::onDisk)).isEmpty();
    }

    @Test
    void givenAUse_whenReclaimed_thenItAndAllAboveItAreKeptOnce() {
        use(1);
        assertThat(kept()).containsExactlyInAnyOrder(1L, 2L);
        assertThat(onDisk(1)).isTrue();
        assertThat(onDisk(2)).isFalse();
        assertThat(kept()).as("not used since").isEmpty();
        assertThat(onDisk(0)).isFalse();
    }

    @Test
    void givenAUseByATierAbove_whenReclaimed_thenTheBlocksThatItToldOfAreKept() {
        tierPort.onUsed(written.get(1).block());
        tierPort.onUsed(written.getFirst().block());

        assertThat(kept()).containsExactlyInAnyOrder(1L, 2L);
        assertThat(kept()).as("not used since").isEmpty();
    }
}

package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.NoveltyClass;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.LoadBatch;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordHandle;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Cohort of a question put behind a document of forty blocks, of which two were put, after various fates of these
/// two.
final class PutNoveltyTest {

    private static final int TOKENS = 512;
    private static final Namespace SPACE = Namespace.of("m", BlockShape.mla(1, 8, TOKENS, Dtype.INT8));
    private static final Namespace LARGE = Namespace.of("large", BlockShape.kv(256, 8, 128, 64, Dtype.BF16));
    private static final long LIMIT = 1L << 30;
    private static final int DOCUMENT = NoveltyClass.of(40 * TOKENS);
    private static final int QUESTION = NoveltyClass.of(TOKENS);

    private final BlockChain document =
            BlockChain.of(SPACE, IntStream.range(0, 40 * TOKENS).toArray());
    private final BlockChain asked = BlockChain.of(
            SPACE,
            IntStream.range(0, 3 * TOKENS).map(i -> i < 2 * TOKENS ? i : -i).toArray());
    private final HostStore store = new HostStore(
            new HostStoreConfig(2 * SlabPool.MIN_BYTES, 200, PolicyKind.IMPORTANCE, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry space = store.register(SPACE);
    private final List<TierBlock> written = new ArrayList<>();

    @BeforeEach
    void putTwo() {
        assertThat(tierPort.addDisk(LIMIT)).isZero();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, LIMIT, LIMIT, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
        seal(reserve(document, 0));
        seal(reserve(document, 1));
        for (TierPort.PendingWrite next = tierPort.nextWrite(0); next != null; next = tierPort.nextWrite(0)) {
            written.add(next.block());
            tierPort.onWritten(next.record(), 0, written.size());
        }
        assertThat(written).hasSize(2);
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private int reserve(BlockChain chain, int index) {
        PutReservation putReservation = store.reserve(space, chain, index);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        return putReservation.record();
    }

    private int seal(int record) {
        store.seal(record, 7);
        return record;
    }

    private int cohort(int record) {
        return RecordFlags.noveltyClass(store.records().flags(record));
    }

    /// A put of a block of all the memory evicts everything else.
    private void evictAll() {
        BlockChain chain = BlockChain.of(LARGE, IntStream.range(0, 64).toArray());
        store.abandon(store.reserve(store.register(LARGE), chain, 0).record());
        assertThat(store.lookup().match(document, 2)).isZero();
    }

    @Test
    void givenNobodyHasReadIt_whenPut_thenItIsOfTheSameCohort() {
        assertThat(cohort(seal(reserve(asked, 2)))).isEqualTo(DOCUMENT);
    }

    @Test
    void givenSomebodyHasReadIt_whenPut_thenItIsACohortOfItsOwn() {
        store.lookup().unpin(RecordHandle.record(store.lookup().pinDeepest(document)));
        int question = seal(reserve(asked, 2));
        assertThat(cohort(question)).isEqualTo(QUESTION);
        assertThat(cohort(store.records().parent(question))).isEqualTo(DOCUMENT);
    }

    @Test
    void givenItIsReadFromDisk_whenPut_thenItIsACohortOfItsOwn() {
        evictAll();
        LoadBatch loadBatch = store.beginLoads(document, 0, 2, 1);
        for (int i = 0; i < loadBatch.count(); i++) {
            assertThat(tierPort.nextRead(0, loadBatch.record(i), true, 0)).isNotNull();
            tierPort.onRead(loadBatch.record(i), 7, true, false);
        }
        int question = seal(reserve(asked, 2));
        assertThat(cohort(question)).isEqualTo(QUESTION);
        assertThat(cohort(store.records().parent(question))).isEqualTo(DOCUMENT);
        store.lookup().unpin(loadBatch.record(0));
        store.lookup().unpin(loadBatch.record(1));
    }

    @Test
    void givenItIsOnDiskAndComputedAnew_whenPutBeforeItIsFilled_thenItIsACohortOfItsOwn() {
        evictAll();
        int first = reserve(asked, 0);
        int second = reserve(asked, 1);
        int question = reserve(asked, 2);
        assertThat(cohort(question)).isEqualTo(QUESTION);
        seal(first);
        seal(second);
        seal(question);
    }

    @Test
    void givenItWasReadInAnotherTier_whenPut_thenItIsACohortOfItsOwn() {
        tierPort.onUsed(written.getLast());
        assertThat(cohort(seal(reserve(asked, 2)))).isEqualTo(QUESTION);
    }
}

package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.LoadOutcome;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tree.RecordHandle;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// Uses that a policy that learns counts for an object that is prefetched.
final class PrefetchedObjectUseTest {

    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final Namespace LARGE = Namespace.of("large", BlockShape.kv(256, 8, 128, 64, Dtype.BF16));
    private static final BlockKey KEY = BlockKey.ofObject(THINGS, new byte[] {1});
    private static final long LIMIT = 1L << 30;

    private final HostStore store = new HostStore(
            new HostStoreConfig(2 * SlabPool.MIN_BYTES, 200, PolicyKind.IMPORTANCE, 64), ArenaMemory.source());
    private final TierPort tierPort = store.tierPort();

    @BeforeEach
    void writeOne() {
        assertThat(tierPort.addDisk(LIMIT)).isZero();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, LIMIT, LIMIT, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
        NamespaceEntry things = store.register(THINGS);
        write(things, KEY, 1);
        evictAll();
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private void write(NamespaceEntry things, BlockKey key, long place) {
        store.seal(store.reserveObject(things, key, 1 << 20).record(), 7);
        TierPort.PendingWrite write = tierPort.nextWrite(0);
        assertThat(write).isNotNull();
        tierPort.onWritten(write.record(), 0, place);
    }

    /// A put of a block of all the memory evicts everything else.
    private void evictAll() {
        BlockChain chain = BlockChain.of(LARGE, IntStream.range(0, 64).toArray());
        store.abandon(store.reserve(store.register(LARGE), chain, 0, false).record());
    }

    private void arrives() {
        int record = RecordHandle.record(known());
        assertThat(store.hints().startPrefetch(record, RecordHandle.generation(known())))
                .isTrue();
        fill(record);
    }

    private void fill(int record) {
        assertThat(tierPort.nextRead(0, record, true, 0)).isNotNull();
        tierPort.onRead(record, 7, true, false);
    }

    private long known() {
        return store.lookup().findKnown(KEY.hi(), KEY.lo());
    }

    private long uses() {
        store.validate(); // which is when uses are told
        return store.fallbackReport().uses();
    }

    @Test
    void givenAGuess_whenNobodyReadsIt_thenThePolicyHeardOfNoUse() {
        long before = uses();
        arrives();
        assertThat(uses()).isEqualTo(before);
        evictAll();
        assertThat(uses()).isEqualTo(before);
    }

    @Test
    void givenAGuess_whenItIsRead_thenThatIsOneUse() {
        long before = uses();
        arrives();
        read();
        assertThat(uses()).isEqualTo(before + 1);
    }

    @Test
    void givenWhatAHintBringsIn_whenItIsReadOnce_thenThatIsOneUse() {
        long before = uses();
        int record = RecordHandle.record(known());
        assertThat(store.beginLoad(record, RecordHandle.generation(known()), 0)).isEqualTo(LoadOutcome.STARTED);
        fill(record);
        assertThat(uses()).as("nobody has waited").isEqualTo(before);
        read();
        assertThat(uses()).isEqualTo(before + 1);
    }

    @Test
    void givenWhatAHintBringsIn_whenSomebodyComesToWait_thenItsComingIsTheUse() {
        long before = uses();
        int record = RecordHandle.record(known());
        assertThat(store.beginLoad(record, RecordHandle.generation(known()), 0)).isEqualTo(LoadOutcome.STARTED);
        assertThat(store.beginLoad(record, RecordHandle.generation(known()), 1)).isEqualTo(LoadOutcome.JOINED);
        fill(record);
        store.lookup().unpin(record);
        assertThat(uses()).isEqualTo(before + 1);
    }

    @Test
    void givenAGuessOnItsWay_whenAHintSaysTheSame_thenItIsAGuessUntilItIsRead() {
        long before = uses();
        int record = RecordHandle.record(known());
        assertThat(store.hints().startPrefetch(record, RecordHandle.generation(known())))
                .isTrue();
        assertThat(store.beginLoad(record, RecordHandle.generation(known()), 0)).isEqualTo(LoadOutcome.JOINED);
        fill(record);
        assertThat(uses()).isEqualTo(before);
        assertThat(store.beginLoad(record, RecordHandle.generation(known()), 0)).isEqualTo(LoadOutcome.RESIDENT);
        assertThat(store.hints().prefetchStats().used())
                .as("guesses that came true")
                .isZero();
        read();
        assertThat(uses()).isEqualTo(before + 1);
        assertThat(store.hints().prefetchStats().used()).isEqualTo(1);
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void givenAnObjectOnDiskAlone_whenExpectedAndReadOnce_thenItStaysIfOneMoreWaits(int waiting) {
        NamespaceEntry things = store.register(THINGS);
        for (int i = 0; i < waiting; i++) {
            assertThat(store.hints().expect(things, List.of(KEY), 0)).isZero();
        }
        int record = RecordHandle.record(known());
        assertThat(store.beginLoad(record, RecordHandle.generation(known()), 0)).isEqualTo(LoadOutcome.STARTED);
        fill(record);
        read();
        for (int number = 2; number < 100; number++) {
            write(things, BlockKey.ofObject(THINGS, new byte[] {(byte) number}), number);
        }
        assertThat(RecordHandle.isFound(store.lookup().find(KEY.hi(), KEY.lo())))
                .isEqualTo(waiting > 1);
    }

    private void read() {
        long handle = store.lookup().pinKey(KEY.hi(), KEY.lo());
        assertThat(RecordHandle.isFound(handle)).isTrue();
        store.lookup().unpin(RecordHandle.record(handle));
    }
}

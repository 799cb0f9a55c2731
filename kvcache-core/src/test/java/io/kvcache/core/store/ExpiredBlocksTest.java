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
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/// Blocks that a caller hinted to be dead, or to matter little, on disk and on the way there.
final class ExpiredBlocksTest {

    /// Blocks of 1 MiB, so that host memory holds 64.
    private static final BlockShape SHAPE = BlockShape.kv(16, 8, 128, 16, Dtype.BF16);
    private static final Namespace SPACE = Namespace.of("m", SHAPE);
    private static final Namespace LARGE = Namespace.of("large", BlockShape.kv(256, 8, 128, 64, Dtype.BF16));
    private static final int ON_DISK = 24;

    private HostStore store = store(PolicyKind.LRU);
    private TierPort tierPort = store.tierPort();
    private NamespaceEntry entry = store.register(SPACE);
    private long places;

    private static HostStore store(PolicyKind policy) {
        return new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 1_000, policy, 64), ArenaMemory.source());
    }

    private void open(PolicyKind policy, AdmissionKind admission, boolean ranked) {
        store.close();
        store = store(policy);
        tierPort = store.tierPort();
        entry = store.register(SPACE);
        assertThat(tierPort.addDisk(ON_DISK * SHAPE.bytes(), ranked)).isZero();
        tierPort.configureAdmission(admission, 64L << 20, 1 << 20, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private static BlockChain chain(int seed, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, 16 * blocks).map(i -> 10_000 * seed + i).toArray());
    }

    private BlockChain put(BlockChain chain, int from) {
        for (int index = from; index < chain.length(); index++) {
            PutReservation putReservation = store.reserve(entry, chain, index, false);
            assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
            store.seal(putReservation.record(), 7);
        }
        return chain;
    }

    private int write() {
        int written = 0;
        for (TierPort.PendingWrite next = tierPort.nextWrite(0); next != null; next = tierPort.nextWrite(0)) {
            tierPort.onWritten(next.record(), 0, ++places);
            written++;
        }
        return written;
    }

    private BlockChain written(int seed, int blocks) {
        BlockChain chain = put(chain(seed, blocks), 0);
        assertThat(write()).isEqualTo(blocks);
        return chain;
    }

    /// A put of a block of all the memory evicts everything else.
    private void leaveMemory() {
        BlockChain chain = BlockChain.of(LARGE, IntStream.range(0, 64).toArray());
        PutReservation putReservation = store.reserve(store.register(LARGE), chain, 0, false);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.abandon(putReservation.record());
    }

    private int known(BlockChain chain) {
        return store.lookup().matchKnown(chain, 0);
    }

    /// Eight blocks more than the disk takes.
    private void overfill() {
        written(8, 8);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void givenTheEndOfAChainThatIsOver_whenTheDiskIsFull_thenItGoesBeforeWhatWasUsedBefore(boolean inMemory) {
        open(PolicyKind.LRU, AdmissionKind.ALWAYS, false);
        BlockChain early = written(1, 12);
        BlockChain late = written(2, 12);
        if (inMemory) {
            assertThat(store.hints().release(late, 4)).isEqualTo(8);
        }
        leaveMemory();
        if (!inMemory) {
            assertThat(store.hints().release(late, 4)).isEqualTo(8);
        }
        overfill();
        assertThat(known(late)).isEqualTo(4);
        assertThat(known(early)).isEqualTo(12);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void givenAnEndThatIsOver_whenItIsUsedOrGoneOnFrom_thenItIsLikeOthers(boolean used) {
        open(PolicyKind.LRU, AdmissionKind.ALWAYS, false);
        BlockChain early = written(1, 8);
        BlockChain late = written(2, 8);
        store.hints().demote(late, 0);
        if (used) {
            long handle = store.lookup().pinDeepest(late);
            store.lookup().unpin(RecordHandle.record(handle));
        } else {
            put(chain(2, 9), 8);
        }
        store.validate(); // which is when uses are told
        write();
        leaveMemory();
        written(3, 12);
        leaveMemory();
        assertThat(known(late)).isEqualTo(8);
        assertThat(known(early)).isLessThan(8);
    }

    @ParameterizedTest
    @EnumSource(names = {"ALWAYS", "VALUE"})
    void givenBlocksThatWait_whenTheyAreOver_thenTheyAreNotWrittenButForWhatOthersHaveGoneOnFrom(
            AdmissionKind admission) {
        open(PolicyKind.LRU, admission, false);
        BlockChain chain = put(chain(1, 8), 0);
        int[] other = IntStream.range(0, 16 * 6)
                .map(i -> i < 16 * 4 ? 10_000 + i : 90_000 + i)
                .toArray();
        BlockChain branch = put(BlockChain.of(SPACE, other), 4);
        store.hints().demote(chain, 2);
        if (admission == AdmissionKind.ALWAYS) {
            assertThat(write())
                    .as("four that are shared, and the two behind them")
                    .isEqualTo(6);
        }
        write();
        leaveMemory();
        assertThat(known(chain)).isLessThanOrEqualTo(4);
        assertThat(known(branch)).isEqualTo(6);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void givenADiskThatIsRanked_whenWhatReturnedOftenIsOver_thenItGoesFirst(boolean over) {
        open(PolicyKind.IMPORTANCE, AdmissionKind.ALWAYS, true);
        for (int seed = 2; seed < 7; seed++) {
            written(seed, 4);
            leaveMemory();
        }
        BlockChain hot = written(1, 4);
        for (int use = 0; use < 200; use++) {
            long handle = store.lookup().pinDeepest(hot);
            store.lookup().unpin(RecordHandle.record(handle));
            store.validate();
        }
        leaveMemory();
        if (over) {
            assertThat(store.hints().release(hot, 0)).isEqualTo(4);
        }
        written(7, 4);
        leaveMemory();
        assertThat(known(hot)).isEqualTo(over ? 0 : 4);
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void givenAChainThatIsOver_whenARequestIsKnownToComeAfterAll_thenItsDiskKeepsIt(boolean inMemory) {
        open(PolicyKind.IMPORTANCE, AdmissionKind.ALWAYS, false);
        BlockChain early = written(1, 12);
        BlockChain late = written(2, 12);
        if (!inMemory) {
            leaveMemory();
        }
        assertThat(store.hints().release(late, 4)).isEqualTo(8);
        assertThat(store.hints().expect(late)).isTrue();
        leaveMemory();
        overfill();
        assertThat(known(late)).isEqualTo(12);
        assertThat(known(early)).isLessThan(12);
    }

    @ParameterizedTest
    @ValueSource(floats = {1, 0})
    void givenBlocksThatWaitAndAreJustWorthTheirWrite_whenTheyMatterLittle_thenTheyAreNotWritten(float weight) {
        open(PolicyKind.IMPORTANCE, AdmissionKind.VALUE, false);
        BlockChain chain = put(chain(1, 4), 0);
        int[] halvings = weight == 1 ? new int[4] : new int[] {3, 3, 3, 3};
        assertThat(store.hints().setWeights(chain, 0, halvings)).isEqualTo(4);
        assertThat(write()).isEqualTo(weight == 1 ? 4 : 0);
    }

    /// A flush answers for all that was there when it began, whatever is said of it since.
    @ParameterizedTest
    @EnumSource(
            value = AdmissionKind.class,
            names = {"ALWAYS", "SECOND_HIT"})
    void givenAFlushUnderWay_whenABlockThatItAskedForIsOver_thenItIsWrittenAllTheSame(AdmissionKind admission) {
        open(PolicyKind.LRU, admission, false);
        BlockChain chain = put(chain(1, 12), 0);
        long unwritten = tierPort.unwrittenCount();
        assertThat(tierPort.queueUnwritten(0, 0)).as("more to look at").isFalse();
        assertThat(store.hints().release(chain, 4)).isEqualTo(8);
        long mark = tierPort.flushMark();
        assertThat(write()).isEqualTo(12);
        assertThat(tierPort.settledWrites()).isEqualTo(mark);
        assertThat(tierPort.unwrittenCount()).isEqualTo(unwritten);
        assertThat(tierPort.stats().disks().getFirst().blocks()).isEqualTo(12);
    }

    /// Records that waited when the flush began belong to it; later records do not.
    @Test
    void givenAFlush_whenWhatWaitedBeforeAndAfterItIsOver_thenOnlyTheLatterIsNotWritten() {
        open(PolicyKind.LRU, AdmissionKind.ALWAYS, false);
        BlockChain before = put(chain(1, 4), 0);
        long mark = tierPort.flushMark();
        assertThat(store.hints().release(before, 0)).isEqualTo(4);
        assertThat(write()).isEqualTo(4);
        assertThat(tierPort.settledWrites()).isEqualTo(mark);
        BlockChain after = put(chain(2, 4), 0);
        assertThat(store.hints().release(after, 0)).isEqualTo(4);
        assertThat(write()).isZero();
    }
}

package io.kvcache.core.store;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.memory.ArenaMemory;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.core.stats.PrefetchStats;
import io.kvcache.core.store.HostStore.HostStoreConfig;
import io.kvcache.core.store.HostStore.LoadOutcome;
import io.kvcache.core.store.HostStore.PutReservation;
import io.kvcache.core.store.NamespaceRegistry.NamespaceEntry;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.core.tier.TierRead;
import io.kvcache.core.tree.ControlWord;
import io.kvcache.core.tree.RecordFlags;
import io.kvcache.core.tree.RecordHandle;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Objects on a disk that are prefetched.
final class PrefetchAdmissionTest {

    private static final Namespace THINGS = Namespace.objects("things", "t");
    private static final Namespace LARGE = Namespace.of("large", BlockShape.kv(256, 8, 128, 64, Dtype.BF16));
    private static final int BYTES = 1 << 20;
    private static final long LIMIT = 1L << 30;

    /// 64 MiB, of which an eighth may be ahead.
    private final HostStore store =
            new HostStore(new HostStoreConfig(2 * SlabPool.MIN_BYTES, 200, PolicyKind.LRU, 64), ArenaMemory.source());

    private final TierPort tierPort = store.tierPort();
    private final NamespaceEntry things = store.register(THINGS);
    private long places;

    @BeforeEach
    void writeTwenty() {
        assertThat(tierPort.addDisk(LIMIT)).isZero();
        tierPort.configureAdmission(AdmissionKind.ALWAYS, LIMIT, LIMIT, AdmissionKind.DEFAULT_GAIN);
        tierPort.endRecovery();
        for (int number = 0; number < 20; number++) {
            put(number);
        }
        write();
        evictAll();
    }

    @AfterEach
    void close() {
        store.validate();
        store.close();
    }

    private static BlockKey key(int number) {
        return BlockKey.ofObject(THINGS, new byte[] {(byte) number});
    }

    private void put(int number) {
        PutReservation putReservation = store.reserveObject(things, key(number), BYTES);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.seal(putReservation.record(), 7);
    }

    private void write() {
        for (TierPort.PendingWrite next = tierPort.nextWrite(0); next != null; next = tierPort.nextWrite(0)) {
            tierPort.onWritten(next.record(), 0, ++places);
        }
    }

    /// A put of a block of all the memory evicts everything else.
    private void evictAll() {
        BlockChain chain = BlockChain.of(LARGE, IntStream.range(0, 64).toArray());
        PutReservation putReservation = store.reserve(store.register(LARGE), chain, 0, false);
        assertThat(putReservation.outcome()).isEqualTo(PutOutcome.RESERVED);
        store.abandon(putReservation.record());
    }

    private int record(int number) {
        return RecordHandle.record(
                store.lookup().findKnown(key(number).hi(), key(number).lo()));
    }

    private boolean begin(int number) {
        long handle = store.lookup().findKnown(key(number).hi(), key(number).lo());
        return store.hints().startPrefetch(RecordHandle.record(handle), RecordHandle.generation(handle));
    }

    private void arrives(int number) {
        TierRead read = tierPort.nextRead(0, record(number), true, 0);
        assertThat(read).isNotNull();
        tierPort.onRead(record(number), 7, true, false);
    }

    private void use(int number) {
        long handle = store.lookup().pinKey(key(number).hi(), key(number).lo());
        assertThat(RecordHandle.isFound(handle)).isTrue();
        store.lookup().unpin(RecordHandle.record(handle));
        store.validate(); // which is when uses are told
    }

    private int uses(int number) {
        return RecordFlags.uses(store.records().flags(record(number)));
    }

    @Test
    void givenAnObjectOnDisk_whenBroughtInAndRead_thenThatIsOneUse() {
        int before = uses(3);
        assertThat(begin(3)).isTrue();
        assertThat(store.hints().prefetchStats()).isEqualTo(new PrefetchStats(1, 0, 0, BYTES));
        arrives(3);
        use(3);
        assertThat(store.hints().prefetchStats()).isEqualTo(new PrefetchStats(1, 1, 0, 0));
        assertThat(uses(3)).isEqualTo(before + 1);
        use(3);
        assertThat(uses(3)).as("the next one counts").isEqualTo(before + 2);
    }

    @Test
    void givenTwoOnDisk_whenBroughtInAndOneIsRead_thenTheOtherOneGoesFirst() {
        for (int number : new int[] {3, 4}) {
            assertThat(begin(number)).isTrue();
            arrives(number);
        }
        use(3);
        for (int number = 20; isResident(4); number++) {
            assertThat(isResident(3)).isTrue();
            put(number);
            write();
        }
        assertThat(isResident(3)).isTrue();
    }

    private boolean isResident(int number) {
        return ControlWord.state(store.records().control(record(number))) == ControlWord.SEALED;
    }

    @Test
    void givenOneOnItsWay_whenSomebodyAsksForIt_thenItIsUsed() {
        assertThat(begin(3)).isTrue();
        int generation = ControlWord.generation(store.records().control(record(3)));
        assertThat(store.beginLoad(record(3), generation, 1)).isEqualTo(LoadOutcome.JOINED);
        assertThat(store.hints().prefetchStats()).isEqualTo(new PrefetchStats(1, 1, 0, 0));
        arrives(3);
        store.lookup().unpin(record(3));
    }

    @Test
    void givenOneThatNobodyReads_whenItLeaves_thenItWasWasted() {
        assertThat(begin(3)).isTrue();
        arrives(3);
        evictAll();
        assertThat(store.hints().prefetchStats()).isEqualTo(new PrefetchStats(1, 0, 1, 0));
    }

    @Test
    void givenOneThatCannotBeRead_whenGivenUp_thenItWasWastedAndIsOnDiskStill() {
        assertThat(begin(3)).isTrue();
        assertThat(tierPort.nextRead(0, record(3), true, 0)).isNotNull();
        tierPort.onRead(record(3), 0, false, false);
        assertThat(store.hints().prefetchStats()).isEqualTo(new PrefetchStats(1, 0, 1, 0));
        assertThat(ControlWord.state(store.records().control(record(3)))).isEqualTo(ControlWord.ON_DISK);
    }

    @Test
    void givenOneThatIsDropped_whenOnItsWay_thenItWasWasted() {
        assertThat(begin(3)).isTrue();
        int record = record(3);
        assertThat(store.drop(key(3).hi(), key(3).lo())).isEqualTo(1);
        assertThat(tierPort.nextRead(0, record, true, 0)).isNull();
        assertThat(store.hints().prefetchStats()).isEqualTo(new PrefetchStats(1, 0, 1, 0));
    }

    @Test
    void givenAnObjectInMemory_whenWanted_thenNothingIsToBeDone() {
        assertThat(begin(3)).isTrue();
        assertThat(begin(3)).as("on its way").isFalse();
        arrives(3);
        assertThat(begin(3)).as("here").isFalse();
    }

    @Test
    void givenManyThatNobodyRead_whenMoreAreWanted_thenAnEighthOfMemoryIsTheMost() {
        int begun = 0;
        for (int number = 0; number < 20; number++) {
            begun += begin(number) ? 1 : 0;
        }
        assertThat(begun).isEqualTo(8);
        for (int number = 0; number < begun; number++) {
            arrives(number);
        }
        use(0);
        assertThat(begin(15)).as("one was read").isTrue();
        arrives(15);
    }

    @Test
    void givenAMemoryFullOfWhatWaitsToBeWritten_whenWanted_thenNothingGoesForIt() {
        for (int number = 100; number < 164; number++) {
            put(number);
        }
        assertThat(begin(3)).isFalse();
        write();
        for (int number = 0; number < 64; number++) {
            use(163);
        }
        assertThat(begin(3)).as("in the place of what was unused for long").isTrue();
        arrives(3);
    }

    @Test
    void givenAMemoryOfWhatWasUsedJustNow_whenWanted_thenNothingGoesForIt() {
        for (int number = 100; number < 164; number++) {
            put(number);
        }
        write();
        assertThat(begin(3))
                .as("a use within 64 uses is no more than the oldest was")
                .isFalse();
    }

    @Test
    void givenAGuessThatNobodyReads_whenItCameAndLeft_thenThatIsNoUse() {
        int before = uses(3);
        assertThat(begin(3)).isTrue();
        arrives(3);
        assertThat(uses(3)).isEqualTo(before);
        evictAll();
        assertThat(uses(3)).isEqualTo(before);
    }

    @Test
    void givenATenantWhoseGuessesFail_whenAnotherGuesses_thenHisOddsAndRoomAreHisOwn() {
        Namespace other = Namespace.objects("others", "o");
        NamespaceEntry others = store.register(other);
        BlockKey own = BlockKey.ofObject(other, new byte[] {1});
        PutReservation putReservation = store.reserveObject(others, own, BYTES);
        store.seal(putReservation.record(), 7);
        write();
        evictAll();
        store.setWeight(others, 1);
        int begun = 0;
        for (int number = 0; number < 20; number++) {
            begun += begin(number) ? 1 : 0;
        }
        assertThat(begun).as("an eighth of half").isEqualTo(4);
        long handle = store.lookup().findKnown(own.hi(), own.lo());
        assertThat(store.hints().startPrefetch(RecordHandle.record(handle), RecordHandle.generation(handle)))
                .isTrue();
        for (int number = 0; number < begun; number++) {
            arrives(number);
        }
        TierRead read = tierPort.nextRead(0, RecordHandle.record(handle), true, 0);
        assertThat(read).isNotNull();
        tierPort.onRead(RecordHandle.record(handle), 7, true, false);
    }

    @Test
    void givenAChainOnDisk_whenItsLikelyContinuationIsAskedFor_thenItIsWhatWasUsedLastAndIsNotOver() {
        Namespace space = Namespace.of("m", BlockShape.kv(16, 8, 128, 16, Dtype.BF16));
        NamespaceEntry entry = store.register(space);
        BlockChain first = chain(space, 1);
        BlockChain second = chain(space, 2);
        for (BlockChain each : List.of(first, second)) {
            for (int index = each == first ? 0 : 1; index < 3; index++) {
                store.seal(store.reserve(entry, each, index, false).record(), 7);
            }
        }
        write();
        store.lookup().touch(store.lookup().find(first.keyHi(2), first.keyLo(2)));
        store.validate();
        evictAll();
        long head = store.lookup().findKnown(first.keyHi(0), first.keyLo(0));
        long likely = store.hints().likelyNextOnDisk(head);
        assertThat(likely).isEqualTo(store.lookup().findKnown(first.keyHi(1), first.keyLo(1)));
        store.hints().release(first, 1);
        assertThat(store.hints().likelyNextOnDisk(head))
                .isEqualTo(store.lookup().findKnown(second.keyHi(1), second.keyLo(1)));
        assertThat(store.hints().startPrefetch(RecordHandle.record(likely), RecordHandle.generation(likely)))
                .as("what is over")
                .isFalse();
    }

    /// Three blocks of 1 MiB, the first is the same in all.
    private static BlockChain chain(Namespace space, int seed) {
        return BlockChain.of(
                space,
                IntStream.range(0, 48).map(i -> i < 16 ? i : 1000 * seed + i).toArray());
    }
}

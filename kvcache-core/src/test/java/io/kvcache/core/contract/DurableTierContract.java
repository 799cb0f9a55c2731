package io.kvcache.core.contract;

import static io.kvcache.core.contract.TierTestBlocks.BLOCKS;
import static io.kvcache.core.contract.TierTestBlocks.THINGS;
import static io.kvcache.core.contract.TierTestBlocks.content;
import static io.kvcache.core.contract.TierTestBlocks.inNamespace;
import static io.kvcache.core.contract.TierTestBlocks.prefix;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.TierDriver.TierKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.SubmitResult;
import io.kvcache.core.tier.Tier;
import io.kvcache.core.tier.TierBlock;
import io.kvcache.core.tier.TierRead.Outcome;
import io.kvcache.core.tier.TierState;
import io.kvcache.core.tier.Tombstone;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Contract of a [Tier] that keeps its blocks beyond its closing.
///
/// An implementation's test extends it by a class of one line that hands over a [DurableTierUnderTest.Factory].
public abstract class DurableTierContract extends TierContract {

    protected DurableTierContract(DurableTierUnderTest.Factory factory) {
        super(factory);
    }

    private DurableTierUnderTest storage() {
        return (DurableTierUnderTest) subject; // as the factory makes it
    }

    @Test
    void givenANamespaceThatTheTierDoesNotKnow_whenWritten_thenLaterUntilItDoes() {
        Tier tier = open();
        List<MemorySegment> pages = List.of(filled(content(1), DEFAULT_BYTES));
        TierBlock block = block(1, DEFAULT_BYTES);
        assertThat(tier.write(block, pages, 1)).isEqualTo(SubmitResult.RETRY);
        rig.awaitTrue("the namespace is known", () -> tier.write(block, pages, 2) == SubmitResult.ACCEPTED);
        rig.awaitTrue("the write ends", () -> rig.places.containsKey(2L));
        assertThat(rig.places).as("of what was not taken nothing is told").doesNotContainKey(1L);
    }

    @Test
    void givenWorkSomeTimeAgo_whenStatisticsAreAskedForTheFirstTime_thenTheyCountIt() {
        Tier tier = open();
        write(block(1, DEFAULT_BYTES));
        for (int i = 0; i < 1000; i++) { // a second
            rig.tick();
        }
        assertThat(tier.stats().blocksWritten()).isEqualTo(1);
        assertThat(tier.stats().blockBytesWritten()).isEqualTo(DEFAULT_BYTES);
    }

    @Test
    void givenAFlush_whenReopened_thenAllIsToldNewestFirstAsItWas() {
        open();
        List<TierBlock> written = new ArrayList<>();
        for (long key = 10; key < 20; key++) {
            written.add(block(key, DEFAULT_BYTES + (int) key));
            write(written.getLast());
        }
        rig.flush();
        reopen();
        int id = rig.namespaceId(BLOCKS);
        assertThat(rig.recovered)
                .isEqualTo(written.reversed().stream()
                        .map(block -> inNamespace(block, id))
                        .toList());
        for (TierBlock block : rig.recovered) {
            requireReadable(block, rig.recoveredAt(block));
        }
    }

    @Test
    void givenAStoreThatDoesNotKnowANamespace_whenReopened_thenItIsAskedForItsNumber() {
        open();
        write(block(1, DEFAULT_BYTES));
        rig.flush();
        close();
        rig = new TierDriver(subject.waitNanos());
        open = true;
        rig.openAndRecover(subject);
        assertThat(rig.namespaces).containsExactly(BLOCKS);
        assertThat(rig.recovered.getFirst().namespaceId()).isZero();
    }

    @Test
    void givenAStoreThatRefusesANamespace_whenReopened_thenNothingOfItIsTold() {
        open();
        write(block(1, DEFAULT_BYTES));
        writeObject(2, 1, DEFAULT_BYTES);
        rig.flush();
        close();
        rig = new TierDriver(subject.waitNanos(), THINGS) {
            @Override
            public int namespaceId(Namespace namespace) {
                return namespace.equals(THINGS) ? 0 : -1;
            }
        };
        open = true;
        rig.openAndRecover(subject);
        assertThat(rig.recovered).extracting(TierBlock::keyHi).containsExactly(2L);
    }

    @Test
    void givenTwoVersionsOfOneKey_whenReopened_thenTheNewerIsToldFirst() {
        open();
        writeObject(5, 1, 9_000);
        writeObject(5, 2, 7_000);
        rig.flush();
        reopen();
        TierBlock first = rig.recovered.getFirst();
        assertThat(first).isEqualTo(object(5, 2, 7_000));
        Outcome outcome = read(first, rig.recoveredAt(first), content(5).withVersion(2));
        assertThat(outcome).isEqualTo(Outcome.SUCCESS);
    }

    @Test
    void givenABurialAndAFlush_whenReopened_thenItIsToldBeforeWhatItBuries() {
        open();
        rig.bury(Tombstone.of(writeObject(5, 1, 9_000)));
        writeObject(6, 1, 9_000);
        rig.flush();
        reopen();
        assertThat(rig.recovered).as("without what is buried by then").containsExactly(object(6, 1, 9_000));
    }

    @Test
    void givenTheBurialOfANamespace_whenReopened_thenOnlyWhatWasWrittenAfterItIsTold() {
        open();
        TierBlock buried = writeObject(5, 1, 9_000);
        writeObject(7, 1, 9_000);
        write(block(1, DEFAULT_BYTES));
        rig.bury(Tombstone.of(buried.namespaceId()));
        writeObject(6, 1, 9_000);
        rig.flush();
        reopen();
        assertThat(rig.recovered).extracting(TierBlock::keyHi).containsExactlyInAnyOrder(6L, 1L);
    }

    @Test
    void givenABurialAndAnotherWriteAfterIt_whenReopened_thenThatOneCounts() {
        open();
        rig.bury(Tombstone.of(writeObject(5, 1, 9_000)));
        writeObject(5, 2, 8_000);
        rig.flush();
        reopen();
        assertThat(rig.recovered.getFirst()).isEqualTo(object(5, 2, 8_000));
    }

    /// A tier may notice it at opening already, and not tell of the block. One of the largest behind the others makes
    /// a tier of regions close the one that is damaged, so that it does not look at every block there.
    @Test
    void givenBytesThatWereChanged_whenRead_thenCorruptAndNeverWrong() {
        Tier tier = open();
        for (long key = 10; key < 14; key++) {
            write(block(key, DEFAULT_BYTES));
        }
        write(block(14, Math.toIntExact(tier.maxBlockBytes())));
        rig.flush();
        close();
        assertThat(storage().damage(prefix(12))).isPositive();
        open();
        assertThat(rig.recovered).extracting(TierBlock::keyHi).contains(10L, 11L, 13L, 14L);
        for (TierBlock block : rig.recovered) {
            Outcome outcome = read(block, rig.recoveredAt(block), content(block.keyHi()));
            assertThat(outcome).isEqualTo(block.keyHi() == 12 ? Outcome.CORRUPT : Outcome.SUCCESS);
        }
    }

    @Test
    void givenAnOffer_whenABlockIsKept_thenItIsToldAtTheNextOpening() {
        open();
        TierBlock kept = block(1, DEFAULT_BYTES);
        long keptAt = write(kept);
        rig.keep = TierKey.of(kept)::equals;
        writeUntilReclaimed(keptAt);
        rig.flush();
        reopen();
        assertThat(rig.recoveredAt).containsKey(TierKey.of(kept));
    }

    @Test
    void givenStorageOfSomethingElse_whenOpened_thenRefusedWithACauseAndLeftAlone() {
        storage().estrange();
        long before = storage().checksum();
        Tier tier = begin().open(subject);
        assertThat(tier.state()).isEqualTo(TierState.REFUSED);
        assertThat(tier.state().isReadable()).isFalse();
        assertThat(tier.cause()).isNotEmpty();
        assertThat(tier.flush(1)).isEqualTo(SubmitResult.REJECTED);
        close();
        assertThat(storage().checksum()).isEqualTo(before);
    }
}

package io.kvcache.tiers.disk;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.disk.DiskSet.Membership;
import io.kvcache.tiers.disk.DiskSet.SetMember;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/// Which disks give up what, as disks come and go, with crashes between the superblocks of two disks.
final class DiskSetTest {

    private final Logger log = Logger.getLogger(DiskLog.class.getName());
    private final Disk a = new Disk(1);
    private final Disk b = new Disk(2);
    private final Disk c = new Disk(3);
    private long ids = 100;

    @BeforeEach
    void silence() {
        log.setLevel(Level.OFF);
    }

    @AfterEach
    void unsilence() {
        log.setLevel(null);
    }

    /// What is durable of a disk.
    private static final class Disk {
        private final long id;
        private Membership superblock = Membership.NONE;
        private long opening;

        Disk(long id) {
            this.id = id;
        }

        boolean givesUpValues() {
            return superblock.valuesFrom() == opening;
        }

        boolean givesUpBlocks() {
            return superblock.blocksFrom() == opening;
        }
    }

    /// A process that has some disks.
    private final class Process {
        private final List<Disk> disks;
        private final List<SetMember> members = new ArrayList<>();

        Process(Disk... disks) {
            DiskSet set = new DiskSet(() -> ids++);
            this.disks = List.of(disks);
            this.disks.forEach(disk -> members.add(set.add("disk " + disk.id)));
            this.disks.forEach(this::mount);
        }

        void mount(Disk disk) {
            member(disk).onMounted(disk.id, disk.superblock, ++disk.opening);
        }

        SetMember member(Disk disk) {
            return members.get(disks.indexOf(disk));
        }

        /// The superblocks of some disks reach them.
        Process write(Disk... some) {
            for (Disk disk : some) {
                disk.superblock = Objects.requireNonNull(member(disk).wanted());
                member(disk).onDurable(disk.superblock);
            }
            return this;
        }

        boolean canWrite() {
            return members.getFirst().canWrite();
        }

        /// Drops a block on all disks that are there.
        void dropBlock(Disk... present) {
            for (Disk disk : present) {
                assertThat(member(disk).recordBlockDrop()).isFalse();
                write(disk);
                assertThat(member(disk).recordBlockDrop()).isTrue();
            }
        }
    }

    private Process run(Disk... disks) {
        Process process = new Process(disks).write(disks);
        assertThat(process.canWrite()).isTrue();
        return process;
    }

    @Test
    void givenTheSameDisks_whenOpenedAgain_thenNothingChangesAndNothingIsGivenUp() {
        run(a, b).dropBlock(a, b);
        DiskGeneration first = a.superblock.generation();
        Process again = new Process(b, a);
        assertThat(again.canWrite()).isTrue();
        assertThat(again.member(a).wanted()).isEqualTo(a.superblock);
        assertThat(first.number()).isEqualTo(1);
        assertThat(b.givesUpValues()).isFalse();
    }

    @Test
    void givenADiskThatIsStillToBeOpened_whenAnotherIsOpen_thenNothingIsDecided() {
        DiskSet set = new DiskSet(() -> ids++);
        SetMember first = set.add("first");
        SetMember second = set.add("second");
        first.onMounted(1, Membership.NONE, 1);
        assertThat(first.wanted()).isNull();
        assertThat(first.canWrite()).isFalse();
        second.onMounted(2, Membership.NONE, 1);
        Membership wanted = Objects.requireNonNull(first.wanted());
        second.onDurable(wanted);
        assertThat(second.canWrite()).as("the first one is not in it yet").isFalse();
        first.onDurable(wanted);
        assertThat(second.canWrite()).isTrue();
    }

    @Test
    void givenADiskThatWasLeftOut_whenItIsBack_thenItGivesUpItsValuesAndKeepsItsBlocks() {
        run(a, b).dropBlock(a, b);
        run(a);
        run(a, b);
        assertThat(b.givesUpValues()).isTrue();
        assertThat(b.givesUpBlocks()).isFalse();
        assertThat(a.givesUpValues()).isFalse();
        run(b, a);
        assertThat(b.givesUpValues()).as("another time").isFalse();
    }

    @Test
    void givenBlocksThatWereDroppedMeanwhile_whenADiskIsBack_thenItGivesUpItsBlocksToo() {
        run(a, b);
        run(a).dropBlock(a);
        run(a);
        run(b, a);
        assertThat(b.givesUpBlocks()).isTrue();
        assertThat(a.givesUpBlocks()).isFalse();
    }

    @Test
    void givenOneDiskForEachOfTwoStores_whenTheyMeetAgain_thenOneOfThemGivesUp() {
        run(a, b);
        run(a);
        run(b).dropBlock(b);
        run(b, a);
        assertThat(a.givesUpValues()).as("the first disk's set counts").isTrue();
        assertThat(a.givesUpBlocks()).isTrue();
        assertThat(b.givesUpValues()).isFalse();
    }

    @Test
    void givenMoreDisksOfOneSet_whenADiskOfAnotherIsFirst_thenThatOneGivesUp() {
        run(c);
        run(a, b);
        run(c, a, b);
        assertThat(c.givesUpValues()).isTrue();
        assertThat(c.givesUpBlocks()).as("nothing was dropped").isFalse();
        assertThat(a.givesUpValues() || b.givesUpValues()).isFalse();
    }

    @Test
    void givenANewDisk_whenAdded_thenNoneGivesUpAnything() {
        run(a).dropBlock(a);
        run(c, a);
        assertThat(a.givesUpValues() || c.givesUpValues()).isFalse();
        assertThat(a.superblock.generation().members()).hasSize(2);
    }

    @Test
    void givenACrashBeforeAllSuperblocks_whenOpenedAgain_thenDisksThatMissedNothingGiveUpNothing() {
        run(a, b, c);
        assertThat(new Process(a, c).write(a).canWrite())
                .as("one disk is not there yet")
                .isFalse();
        run(a, c);
        assertThat(a.givesUpValues() || c.givesUpValues()).isFalse();
        run(a, b, c);
        assertThat(b.givesUpValues()).isTrue();
        assertThat(c.givesUpValues()).isFalse();
    }

    @Test
    void givenACrashBeforeTheSuperblockOfAnOldDisk_whenOpenedAgain_thenItStillGivesUp() {
        run(a, b);
        run(a);
        new Process(a, b).write(a);
        run(a, b);
        assertThat(b.givesUpValues()).isTrue();
        assertThat(a.givesUpValues()).isFalse();
    }

    @Test
    void givenSeveralCrashesBetweenTwoSuperblocks_whenOpenedAgain_thenNothingIsGivenUp() {
        run(a, b, c);
        new Process(a, c).write(a);
        new Process(a, b, c).write(b);
        assertThat(b.givesUpValues()).isTrue();
        run(c, a, b);
        assertThat(a.givesUpValues()).isFalse();
        assertThat(c.givesUpValues()).as("two generations never began").isFalse();
        assertThat(b.superblock.generation().number()).isEqualTo(3);
    }

    @Test
    void givenADiskThatFails_whenTheProcessIsStartedAgain_thenItGivesUp() {
        Process process = run(a, b, c);
        process.member(b).leave();
        assertThat(process.canWrite()).isFalse();
        process.write(a);
        assertThat(process.canWrite()).isFalse();
        process.write(c);
        assertThat(process.canWrite()).isTrue();
        run(a, b, c);
        assertThat(b.givesUpValues()).isTrue();
        assertThat(a.givesUpValues() || c.givesUpValues()).isFalse();
    }

    @Test
    void givenADiskThatFails_whenOpenedAgain_thenItGivesUpValuesAndTheStoreTellsItDrops() {
        Process process = run(a, b);
        process.member(b).leave();
        process.write(a).dropBlock(a);
        process.mount(b);
        assertThat(process.canWrite()).isFalse();
        process.write(a, b);
        assertThat(process.canWrite()).isTrue();
        assertThat(b.givesUpValues()).isTrue();
        assertThat(b.givesUpBlocks()).isFalse();
        run(a, b);
        assertThat(a.givesUpValues() || b.givesUpValues()).isFalse();
    }

    @Test
    void givenADiskThatCannotBeWrittenTo_whenDisksGo_thenTheOthersDoNotWaitAndItGivesUpNothing() {
        run(a, b, c);
        Process process = new Process(a, b).write(a);
        process.member(b).onReadOnly();
        assertThat(process.canWrite()).isTrue();
        run(a, b);
        assertThat(b.givesUpValues()).as("what was flushed was promised").isFalse();
    }

    @Test
    void givenTheOnlyDisk_whenItFailsAndIsBack_thenItGivesUpItsValues() {
        Process process = run(a);
        process.member(a).leave();
        process.mount(a);
        process.write(a);
        assertThat(a.givesUpValues()).isTrue();
        assertThat(process.canWrite()).isTrue();
    }

    @Test
    void givenADiskThatWasAwayForLong_whenItIsBack_thenItIsAsOneOfAnotherSet() {
        run(a, b).dropBlock(a, b);
        for (int i = 0; i < DiskGeneration.MAX_LINE; i++) {
            run(a);
            run(a, c);
        }
        run(b, a);
        assertThat(a.givesUpValues())
                .as("the first disk's set counts, as neither knows the other")
                .isTrue();
    }
}

package io.kvcache.server.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.DropRecord;
import io.kvcache.cluster.DropRecord.Kind;
import io.kvcache.cluster.DropRecord.NamespaceDigest;
import io.kvcache.core.identity.BlockKey;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The file of drops: what it keeps, and how it takes damage.
final class DropFileTest {

    private static final DropRecord FIRST = drop(1);
    private static final DropRecord SECOND = drop(2);
    private static final DropRecord THIRD = drop(3);

    @TempDir
    private Path folder;

    private static DropRecord drop(long id) {
        return new DropRecord(new NamespaceDigest(1, 2, 3, 4), Kind.CHAIN, new BlockKey(id, id), 1000 + id, id);
    }

    private Path path() {
        return folder.resolve(DropFile.NAME);
    }

    private void write(boolean synced) throws IOException {
        try (DropFile file = DropFile.read(path())) {
            file.rewrite();
            file.add(List.of(FIRST));
            file.add(List.of(SECOND));
            if (synced) {
                file.markSynced(file.unsynced());
            }
        }
    }

    private void assertRead(List<DropRecord> records, List<DropRecord> unsynced) {
        DropFile file = DropFile.read(path());
        assertThat(file.isDamaged()).isFalse();
        assertThat(file.records()).isEqualTo(records);
        assertThat(file.unsynced()).isEqualTo(unsynced);
    }

    @Test
    void givenDrops_whenReadAgain_thenTheyAreThere() throws IOException {
        assertRead(List.of(), List.of());
        write(false);
        assertRead(List.of(FIRST, SECOND), List.of(FIRST, SECOND));
        Files.delete(path());
        write(true);
        assertRead(List.of(FIRST, SECOND), List.of());
    }

    @Test
    void givenDropsThatAreDurable_whenOthersFollow_thenThoseAloneAreNot() throws IOException {
        write(true);
        try (DropFile file = DropFile.read(path())) {
            file.add(List.of(THIRD));
            assertRead(List.of(FIRST, SECOND, THIRD), List.of(THIRD));
            file.rewrite();
            assertRead(List.of(FIRST, SECOND, THIRD), List.of(THIRD));
        }
    }

    @Test
    void givenDropsThatBecomeDurable_whenAnotherOneWasAddedMeanwhile_thenThatOneIsNot() throws IOException {
        try (DropFile file = DropFile.read(path())) {
            file.add(List.of(FIRST, SECOND));
            List<DropRecord> flushing = file.unsynced();
            file.add(List.of(THIRD));
            file.markSynced(flushing);
        }
        assertRead(List.of(FIRST, SECOND, THIRD), List.of(THIRD));
    }

    @Test
    void givenADropOfWhichTheTimeIsCorrected_whenReadAgain_thenItIsAsDurableAsBefore() throws IOException {
        DropRecord earlier = new DropRecord(FIRST.namespace(), Kind.CHAIN, FIRST.key(), 1, FIRST.id());
        write(true);
        try (DropFile file = DropFile.read(path())) {
            file.add(List.of(earlier));
        }
        assertRead(List.of(earlier, SECOND), List.of());
        Files.delete(path());
        write(false);
        try (DropFile file = DropFile.read(path())) {
            file.add(List.of(earlier));
            assertRead(List.of(earlier, SECOND), List.of(earlier, SECOND));
            file.rewrite();
            assertRead(List.of(earlier, SECOND), List.of(earlier, SECOND));
        }
    }

    @Test
    void givenADamagedFile_whenWrittenAnew_thenItStaysDamagedUntilItIsRepaired() throws IOException {
        Files.write(path(), new byte[100]);
        try (DropFile file = DropFile.read(path())) {
            file.rewrite();
            file.add(List.of(FIRST));
            file.markSynced(List.of(FIRST));
            assertThat(DropFile.read(path()).isDamaged()).isTrue();
            file.markRepaired();
        }
        assertRead(List.of(FIRST), List.of());
    }

    @Test
    void givenAThreadThatIsInterrupted_whenItAdds_thenTheFileTakesMore() throws IOException {
        try (DropFile file = DropFile.read(path())) {
            Thread.currentThread().interrupt();
            file.rewrite();
            file.add(List.of(FIRST));
            assertThat(Thread.interrupted()).as("kept for the caller").isTrue();
            file.add(List.of(SECOND));
        }
        assertRead(List.of(FIRST, SECOND), List.of(FIRST, SECOND));
    }

    @Test
    void givenAnUnfinishedEntry_whenRead_thenWhatIsBeforeItCounts() throws IOException {
        write(false);
        byte[] all = Files.readAllBytes(path());
        for (int cut = 1; cut < DropRecord.BYTES + 8; cut++) {
            Files.write(path(), Arrays.copyOf(all, all.length - cut));

            assertRead(List.of(FIRST), List.of(FIRST));
        }
    }

    @Test
    void givenAFlippedBit_whenRead_thenTheFileIsDamagedOrShorter() throws IOException {
        write(false);
        byte[] all = Files.readAllBytes(path());
        for (int at = 0; at < all.length; at++) {
            byte[] damaged = all.clone();
            damaged[at] = (byte) (damaged[at] ^ 1 << at % 8);
            Files.write(path(), damaged);
            DropFile contents = DropFile.read(path());

            assertThat(contents.records()).isNotEqualTo(List.of(FIRST, SECOND));
            boolean isCount = (at >= 8 && at < 12)
                    || (at >= all.length - DropRecord.BYTES - 8 && at < all.length - DropRecord.BYTES - 4);
            assertThat(contents.isDamaged() || isCount).isTrue();
        }
    }

    @Test
    void givenAFileThatHasGrown_whenAppended_thenItIsWrittenAnew() throws IOException {
        try (DropFile file = DropFile.read(path())) {
            for (int i = 0; i < 2000; i++) {
                file.add(List.of(FIRST));
            }
        }
        assertThat(Files.size(path())).isLessThan(70_000);
        assertThat(DropFile.read(path()).records()).contains(FIRST);
    }
}

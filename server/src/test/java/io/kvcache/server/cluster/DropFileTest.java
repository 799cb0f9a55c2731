package io.kvcache.server.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.DropLog;
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

    @TempDir
    private Path folder;

    private static DropRecord drop(long id) {
        return new DropRecord(new NamespaceDigest(1, 2, 3, 4), Kind.CHAIN, new BlockKey(id, id), 1000 + id, id);
    }

    private Path path() {
        return folder.resolve(DropFile.NAME);
    }

    private void write(boolean flushed) throws IOException {
        try (DropFile file = DropFile.open(path(), List.of(FIRST))) {
            file.append(List.of(SECOND), null);
            if (flushed) {
                file.markFlushed();
            }
        }
    }

    @Test
    void givenDrops_whenReadAgain_thenTheyAreThere() throws IOException {
        assertThat(DropFile.read(path())).isEqualTo(new DropFile.Contents(List.of(), false, true));
        write(false);
        assertThat(DropFile.read(path())).isEqualTo(new DropFile.Contents(List.of(FIRST, SECOND), false, false));
        write(true);
        assertThat(DropFile.read(path())).isEqualTo(new DropFile.Contents(List.of(FIRST, SECOND), false, true));
    }

    @Test
    void givenAThreadThatIsInterrupted_whenItAdds_thenTheFileTakesMore() throws IOException {
        Thread.currentThread().interrupt();
        try (DropFile file = DropFile.open(path(), List.of(FIRST))) {
            file.append(List.of(SECOND), null);
            assertThat(Thread.interrupted()).as("kept for the caller").isTrue();
            file.markFlushed();
        }
        assertThat(DropFile.read(path())).isEqualTo(new DropFile.Contents(List.of(FIRST, SECOND), false, true));
    }

    @Test
    void givenAnUnfinishedEntry_whenRead_thenWhatIsBeforeItCounts() throws IOException {
        write(false);
        byte[] all = Files.readAllBytes(path());
        for (int cut = 1; cut < DropRecord.BYTES + 8; cut++) {
            Files.write(path(), Arrays.copyOf(all, all.length - cut));

            assertThat(DropFile.read(path())).isEqualTo(new DropFile.Contents(List.of(FIRST), false, false));
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
            DropFile.Contents contents = DropFile.read(path());

            assertThat(contents.records()).isNotEqualTo(List.of(FIRST, SECOND));
            boolean isCount = (at >= 8 && at < 12)
                    || (at >= all.length - DropRecord.BYTES - 8 && at < all.length - DropRecord.BYTES - 4);
            assertThat(contents.isDamaged() || isCount).isTrue();
        }
    }

    @Test
    void givenAFileThatHasGrown_whenAppended_thenItIsWrittenAnew() throws IOException {
        DropLog log = new DropLog();
        log.add(FIRST);
        try (DropFile file = DropFile.open(path(), List.of(FIRST))) {
            for (int i = 0; i < 2000; i++) {
                file.append(List.of(FIRST), log);
            }
        }
        assertThat(Files.size(path())).isLessThan(70_000);
        assertThat(DropFile.read(path()).records()).contains(FIRST);
    }
}

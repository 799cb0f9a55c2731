package io.kvcache.tiers.directory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.kvcache.core.identity.Namespace;
import io.kvcache.core.tier.TierState;
import io.kvcache.tiers.device.LogCapture;
import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import io.kvcache.tiers.disk.DiskLogConfig.ReclaimConfig;
import io.kvcache.tiers.disk.DiskLogFixture;
import io.kvcache.tiers.options.OnIncompatible;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.zip.CRC32C;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// Creation of a directory, and every reason to refuse one.
@EnabledOnOs(OS.LINUX)
@Tag("slow")
final class DiskDirectoryTest {

    private static final long BYTES = 8L << 20;
    private static final int SUPERBLOCK_BYTES = 1 << 20;
    private static final DirectoryOptions REFUSE = DirectoryOptions.defaults();
    private static final DirectoryOptions DISCARD =
            DirectoryOptions.of(OnIncompatible.DISCARD, ReclaimConfig.defaults(), true);

    @TempDir
    private Path above;

    private Path folder = Path.of("");

    @BeforeEach
    void name() {
        folder = above.resolve("a").resolve("b");
    }

    private Path file() {
        return folder.resolve("tier");
    }

    /// Opens a tier and keeps so many more objects in it.
    private int fill(int objects) {
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES, REFUSE);
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            assertThat(log.log().state()).isEqualTo(TierState.SERVING);
            int found = log.keys().size();
            for (int i = 0; i < objects; i++) {
                log.append(found + i + 1, 5_000);
            }
            log.flush();
            return found;
        }
    }

    private void requireRefused(ThrowingCallable open, String... messages) {
        assertThatExceptionOfType(DiskDirectoryException.class)
                .isThrownBy(open)
                .withMessageStartingWith("Cannot use " + folder + " for a disk tier: ")
                .satisfies(refused -> assertThat(refused.getMessage()).contains(messages));
    }

    /// Nothing but the lock is new, and what was there is as it was.
    private void requireRefusedUntouched(String... messages) throws IOException {
        byte[] before = Files.readAllBytes(file());
        requireRefused(() -> DiskDirectory.open(folder, BYTES, REFUSE), messages);
        assertThat(file()).hasBinaryContent(before);
    }

    private void requireDiscarded() {
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES, DISCARD);
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            assertThat(log.log().state()).isEqualTo(TierState.SERVING);
            assertThat(log.keys()).isEmpty();
        }
        assertThat(file()).hasSize(BYTES);
    }

    @Test
    void givenNoDirectory_whenOpened_thenItIsItsOwnersAloneAndSoAreItsFiles() throws IOException {
        assertThat(fill(10)).isZero();
        assertThat(fill(0)).isEqualTo(10);
        for (Path each : new Path[] {folder, folder.getParent()}) {
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(each)))
                    .isEqualTo("rwx------");
        }
        for (String name : new String[] {"tier", "lock"}) {
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(folder.resolve(name))))
                    .isEqualTo("rw-------");
        }
        assertThat(folder).isDirectoryNotContaining(each -> !each.endsWith("tier") && !each.endsWith("lock"));
    }

    @Test
    void givenTwoOpenings_whenFormatted_thenTheirDeviceIdsDiffer() {
        long first;
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES, REFUSE)) {
            first = directory.config().deviceId();
        }
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES, REFUSE)) {
            assertThat(directory.config().deviceId()).isNotEqualTo(first);
        }
    }

    @Test
    void givenAFileInItsPlace_whenOpened_thenRefused() throws IOException {
        Files.createDirectories(folder.getParent());
        Files.writeString(folder, "mine");
        requireRefused(() -> DiskDirectory.open(folder, BYTES, DISCARD), "it is a file; name a directory");
        assertThat(folder).hasContent("mine");
    }

    @Test
    void givenAFileAboveIt_whenOpened_thenRefused() throws IOException {
        Files.writeString(above.resolve("a"), "mine");
        requireRefused(() -> DiskDirectory.open(folder, BYTES, DISCARD), above.resolve("a") + " is a file");
    }

    @Test
    void givenADirectoryThatIsNotWritable_whenOpened_thenRefusedAndNothingIsMade() throws Exception {
        Files.createDirectories(folder);
        Files.setPosixFilePermissions(folder, PosixFilePermissions.fromString("r-x------"));
        boolean root = Files.isWritable(folder);
        assumeThat(!root || immutable("+i")).as("a directory closed to root").isTrue();
        try {
            requireRefused(() -> DiskDirectory.open(folder, BYTES, REFUSE), "cannot be written to by this user");
            assertThat(folder).isEmptyDirectory();
        } finally {
            if (root) {
                immutable("-i");
            }
        }
    }

    /// Sets or clears the immutable attribute, which closes a directory to root as well, on file systems that have
    /// it.
    private boolean immutable(String change) throws InterruptedException {
        try {
            return new ProcessBuilder("chattr", change, folder.toString())
                            .redirectErrorStream(true)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException missing) {
            return false;
        }
    }

    @Test
    void givenTooFewBytes_whenOpened_thenTheLeastIsNamedAndNothingIsMade() {
        requireRefused(() -> DiskDirectory.open(folder, (6L << 20) - 1, REFUSE), "6291455", "at least", "6291456");
        requireRefused(() -> DiskDirectory.open(folder, -1, REFUSE), "at least 6.0 MiB");
        assertThat(above).isEmptyDirectory();
    }

    @Test
    void givenBytesThatAreNoWholePages_whenOpened_thenTheyAreRoundedDown() {
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES + 1000, REFUSE)) {
            assertThat(directory.device().size()).isEqualTo(BYTES);
        }
    }

    @Test
    void givenMoreBytesThanThereIsSpace_whenOpened_thenBothAreNamedAndNothingIsMade() {
        long bytes = above.toFile().getUsableSpace() + (1L << 40);
        requireRefused(() -> DiskDirectory.open(folder, bytes, REFUSE), String.valueOf(bytes), "has only", "left");
        assertThat(above).isEmptyDirectory();
    }

    @Test
    void givenATierOfAnotherSize_whenOpened_thenBothAreNamedAndItIsRefusedOrDiscarded() throws IOException {
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES + (1 << 20), REFUSE);
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            log.append(1, 1000);
        }
        requireRefusedUntouched(
                "9437184", "8388608", "on_incompatible: discard", "withOnIncompatible(OnIncompatible.DISCARD)");
        requireDiscarded();
    }

    @Test
    void givenATruncatedTier_whenOpened_thenItIsRefusedOrDiscarded() throws IOException {
        fill(5);
        try (FileChannel channel = FileChannel.open(file(), StandardOpenOption.WRITE)) {
            channel.truncate(BYTES - 4096);
        }
        requireRefusedUntouched("truncated: it has 8384512 bytes of 8388608");
        requireDiscarded();
    }

    @Test
    void givenSomethingElse_whenOpened_thenItIsRefusedOrDiscarded() throws IOException {
        Files.createDirectories(folder);
        Files.writeString(file(), "somebody's diary");
        requireRefusedUntouched("something that no disk tier wrote");
        requireDiscarded();
    }

    @Test
    void givenADirectoryWithOtherFiles_whenOpened_thenTheFirstIsNamedAndNothingIsMade() throws IOException {
        Files.createDirectories(folder.resolve("src"));
        Files.writeString(folder.resolve("notes.txt"), "mine");
        String[] messages = {"it has other files, notes.txt for one", "name an empty directory"};
        requireRefused(() -> DiskDirectory.open(folder, BYTES, REFUSE), messages);
        requireRefused(() -> DiskDirectory.open(folder, BYTES, DISCARD), messages);
        requireRefused(() -> DiskDirectory.checkUsable(folder, BYTES, OnIncompatible.DISCARD), messages);
        assertThat(folder).isDirectoryNotContaining(each -> each.endsWith("tier") || each.endsWith("lock"));
    }

    @Test
    void givenDirectoriesInEachOther_whenCompared_thenRefusedBothWaysRoundAndThroughLinks() throws IOException {
        Path outer = Files.createDirectories(folder.resolveSibling("outer"));
        Path link = Files.createSymbolicLink(folder.resolveSibling("link"), outer);
        Path beside = folder.resolveSibling("outer-2");
        for (Path inner : List.of(outer.resolve("a/b"), link.resolve("a"), outer.resolve("../outer/a"))) {
            for (List<Path> both : List.of(List.of(inner, beside, outer), List.of(outer, beside, inner))) {
                assertThatExceptionOfType(DiskDirectoryException.class)
                        .isThrownBy(() -> DiskDirectory.requireApart(both))
                        .withMessageContainingAll("Cannot use " + inner, "it lies in " + outer);
            }
        }
        assertThatExceptionOfType(DiskDirectoryException.class)
                .isThrownBy(() -> DiskDirectory.requireApart(List.of(link, outer)))
                .withMessageContainingAll(outer.toString(), "is the directory of another disk", link.toString());
        DiskDirectory.requireApart(List.of(outer, beside));
    }

    @Test
    void givenADirectoryBelowATier_whenOpened_thenRefusedAndNothingIsMade() {
        assertThat(fill(1)).isZero();
        Path below = folder.resolve("below/this");
        assertThatExceptionOfType(DiskDirectoryException.class)
                .isThrownBy(() -> DiskDirectory.open(below, BYTES, REFUSE))
                .withMessageContainingAll(below.toString(), "it lies in " + folder, "holds another disk tier");
        assertThat(below.getParent()).doesNotExist();
        assertThat(fill(0)).isEqualTo(1);
    }

    @Test
    void givenAMountPoint_whenOpened_thenItsLostAndFoundIsFine() throws IOException {
        Files.createDirectories(folder.resolve("lost+found"));
        assertThat(fill(3)).isZero();
        assertThat(fill(0)).isEqualTo(3);
    }

    @Test
    void givenADirectoryInItsFilesPlace_whenOpened_thenItIsRefusedWhateverTheChoice() throws IOException {
        Files.createDirectories(file());
        requireRefused(() -> DiskDirectory.open(folder, BYTES, DISCARD), "is not a regular file");
    }

    @Test
    void givenAnotherFormatVersion_whenOpened_thenItIsRefusedOrDiscarded() throws IOException {
        fill(5);
        changeSuperblocks((block, _) -> block.putInt(12, 9), true);
        requireRefusedUntouched("format version 9", "format version 2");
        requireDiscarded();
    }

    @Test
    void givenBothSuperblocksDamaged_whenOpened_thenItIsRefusedOrDiscarded() throws IOException {
        fill(5);
        changeSuperblocks((block, copy) -> block.put(100 + copy, (byte) ~block.get(100 + copy)), false);
        requireRefusedUntouched("damaged");
        requireDiscarded();
    }

    private interface Change {
        ByteBuffer apply(ByteBuffer superblock, int copy);
    }

    private void changeSuperblocks(Change change, boolean seal) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(file().toFile(), "rw")) {
            for (int copy = 0; copy < 2; copy++) {
                byte[] bytes = new byte[SUPERBLOCK_BYTES];
                file.seek((long) copy * SUPERBLOCK_BYTES);
                file.readFully(bytes);
                ByteBuffer block = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
                change.apply(block, copy);
                if (seal) {
                    CRC32C crc = new CRC32C();
                    crc.update(bytes, 0, 8);
                    crc.update(bytes, 12, bytes.length - 12);
                    block.putInt(8, (int) crc.getValue());
                }
                file.seek((long) copy * SUPERBLOCK_BYTES);
                file.write(bytes);
            }
        }
    }

    @Test
    void givenATierWhoseSuperblocksAreZeroed_whenOpened_thenItIsRefusedOrDiscarded() throws IOException {
        assertThat(fill(10)).isZero();
        byte[] file = Files.readAllBytes(file());
        Arrays.fill(file, 0, 2 << 20, (byte) 0);
        Files.write(file(), file);
        requireRefusedUntouched(
                "superblocks are both blank",
                "restore the first 2 MiB",
                "on_incompatible: discard",
                "withOnIncompatible(OnIncompatible.DISCARD)");
        requireDiscarded();
    }

    @Test
    void givenAnEmptyFile_whenOpened_thenItIsANewOne() throws IOException {
        Files.createDirectories(folder);
        Files.createFile(file());
        assertThat(fill(1)).isZero();
    }

    @Test
    void givenATier_whenOpened_thenTheLogTellsANewOneFromOneThatWasFound() throws IOException {
        try (LogCapture log = new LogCapture(DiskDirectory.class)) {
            fill(3);
            assertThat(log.infos())
                    .singleElement()
                    .asString()
                    .startsWith("Made a new tier of 8.0 MiB (8388608 bytes) in " + folder + " (");
            fill(0);
            assertThat(log.infos())
                    .last()
                    .asString()
                    .startsWith("Opened " + file() + ": 8.0 MiB (8388608 bytes), 1 namespaces (");
            assertThat(log.warnings()).isEmpty();
            Files.write(file(), new byte[0]);
            fill(0);
            assertThat(log.warnings())
                    .singleElement()
                    .asString()
                    .startsWith(file() + " was empty, perhaps truncated; made a new tier of 8.0 MiB");
            Files.write(file(), new byte[(int) BYTES]);
            fill(0);
            assertThat(log.warnings()).last().asString().contains("had no superblock and no blocks; made a new tier");
        }
    }

    @Test
    void givenADamagedSuperblock_whenOpened_thenTheLogWarnsAndTheTierIsThere() throws IOException {
        fill(3);
        try (RandomAccessFile file = new RandomAccessFile(file().toFile(), "rw")) {
            file.write(new byte[64 * 4096]);
        }
        try (LogCapture log = new LogCapture(DiskDirectory.class)) {
            assertThat(fill(0)).isEqualTo(3);
            assertThat(log.warnings())
                    .singleElement()
                    .asString()
                    .contains("Opened " + file(), "one of its two superblocks was not readable", "check the disk");
        }
    }

    @Test
    void givenATierThatIsDiscarded_whenOpened_thenTheLogSaysWhy() throws IOException {
        Files.createDirectories(folder);
        Files.writeString(file(), "a diary");
        try (LogCapture log = new LogCapture(DiskDirectory.class)) {
            requireDiscarded();
            assertThat(log.warnings())
                    .singleElement()
                    .asString()
                    .contains("something that no disk tier wrote", "discarded it", "made a new tier of 8.0 MiB");
        }
    }

    @Test
    void givenALogThatIsRefusedWhileOpening_whenAsked_thenTheSameErrorSaysWhy() throws IOException {
        fill(5);
        try (DiskDirectory directory = DiskDirectory.open(folder, BYTES, REFUSE)) {
            changeSuperblocks((block, _) -> block.put(50, (byte) ~block.get(50)), false);
            try (DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
                assertThat(log.log().state()).isEqualTo(TierState.REFUSED);
                assertThat(directory.openFailure(log.log()))
                        .isInstanceOf(DiskDirectoryException.class)
                        .hasMessageContainingAll(
                                folder.toString(),
                                "damaged",
                                "on_incompatible: discard",
                                "withOnIncompatible(OnIncompatible.DISCARD)");
            }
        }
    }

    @Test
    void givenNoTier_whenAnExistingOneIsOpened_thenRefused() throws IOException {
        requireRefused(
                () -> DiskDirectory.openExisting(folder, REFUSE),
                "the directory " + folder.toAbsolutePath() + " does not exist");
        Files.createDirectories(folder);
        requireRefused(() -> DiskDirectory.openExisting(folder, REFUSE), "there is no disk tier in it");
        assertThat(folder).isEmptyDirectory();
        Files.write(file(), new byte[8192]);
        requireRefused(() -> DiskDirectory.openExisting(folder, REFUSE), "there is no disk tier in it");
        assertThatThrownBy(() -> DiskDirectory.openExisting(file(), REFUSE))
                .isInstanceOf(DiskDirectoryException.class)
                .hasMessageEndingWith("it is a file; name the directory that it is in, " + folder.toAbsolutePath());
    }

    @Test
    void givenATier_whenAnExistingOneIsOpened_thenItsSizeIsTaken() {
        fill(3);
        try (DiskDirectory directory = DiskDirectory.openExisting(folder, REFUSE)) {
            assertThat(directory.device().size()).isEqualTo(BYTES);
        }
    }

    @Test
    void givenNamespacesOfObjects_whenOpenedAgain_thenTheyAreThere() {
        fill(1);
        try (DiskDirectory directory = DiskDirectory.openExisting(folder, REFUSE);
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            assertThat(log.log().namespaces()).containsExactly(Namespace.objects("objects", ""));
        }
    }

    @Test
    void givenNoFolder_whenOnlyLookedAt_thenNothingIsMade() throws IOException {
        DiskDirectory.checkUsable(folder, BYTES, OnIncompatible.REFUSE);
        assertThat(folder.getParent()).doesNotExist();
        requireRefused(() -> DiskDirectory.checkUsable(folder, 1L << 60, OnIncompatible.REFUSE), "has only");
        assertThat(folder.getParent()).doesNotExist();
    }

    @Test
    void givenATierThatIsOpen_whenOnlyLookedAt_thenItIsFineForItsOwnSizeAlone() throws IOException {
        fill(3);
        try (DiskDirectory _ = DiskDirectory.open(folder, BYTES, REFUSE)) {
            DiskDirectory.checkUsable(folder, BYTES, OnIncompatible.REFUSE);
            requireRefused(
                    () -> DiskDirectory.checkUsable(folder, 2 * BYTES, OnIncompatible.REFUSE),
                    "but the configured size is 16");
        }
        assertThat(fill(1)).isEqualTo(3);
    }
}

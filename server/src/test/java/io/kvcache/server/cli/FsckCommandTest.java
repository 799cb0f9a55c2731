package io.kvcache.server.cli;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.tiers.directory.DiskDirectory;
import io.kvcache.tiers.directory.DiskDirectory.DirectoryOptions;
import io.kvcache.tiers.disk.DiskLogFixture;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache fsck` and `kvcache inspect`.
@EnabledOnOs(OS.LINUX)
@Tag("slow")
final class FsckCommandTest {

    private static final long BYTES = 8L << 20;

    /// The first object lies behind two superblocks and the head of its group.
    private static final long FIRST_OBJECT = (2L << 20) + 4096;

    @TempDir
    private Path folder;

    private DiskDirectory open() {
        return DiskDirectory.open(folder, BYTES, DirectoryOptions.defaults());
    }

    private void fill(int objects) {
        try (DiskDirectory directory = open();
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            for (int key = 1; key <= objects; key++) {
                log.append(key, key - 1, 10_000);
            }
            log.flush();
        }
    }

    private void damage() throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(folder.resolve("tier").toFile(), "rw")) {
            file.seek(FIRST_OBJECT);
            int was = file.read();
            file.seek(FIRST_OBJECT);
            file.write(~was);
        }
    }

    private CliRunner.CliResult run(String command, String... options) {
        String[] all = new String[options.length + 2];
        all[0] = command;
        all[1] = folder.toString();
        System.arraycopy(options, 0, all, 2, options.length);
        return CliRunner.run(all);
    }

    @Test
    void givenASoundTier_whenChecked_thenItIsClean() {
        fill(200);
        CliRunner.CliResult cliResult = run("fsck");
        assertThat(cliResult.err()).isEmpty();
        assertThat(cliResult.exitCode()).isZero();
        assertThat(cliResult.out()).contains("clean: every block and object has its checksum", "closed", "objects");
    }

    @Test
    void givenABadObject_whenChecked_thenItIsToldUntilItIsRepaired() throws IOException {
        fill(200);
        damage();
        for (int i = 0; i < 2; i++) {
            CliRunner.CliResult cliResult = run("fsck");
            assertThat(cliResult.exitCode()).isEqualTo(1);
            assertThat(cliResult.out()).contains("1 bad: 1 with a wrong checksum, 0 unreadable", "--repair");
        }
        CliRunner.CliResult repair = run("fsck", "--repair");
        assertThat(repair.exitCode()).isEqualTo(1);
        assertThat(repair.out()).contains("repaired: 1 regions");
        assertThat(run("fsck").exitCode()).isZero();
        try (DiskDirectory directory = open();
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            assertThat(log.readAll()).isEqualTo(199);
            assertThat(log.keys()).doesNotContain(1L);
        }
    }

    @Test
    void givenHeadsOfAnOpenRegionThatAreZeroed_whenChecked_thenWhatIsLostIsToldAndAnOpeningForgetsTheRegion()
            throws IOException {
        fill(20);
        try (RandomAccessFile file = new RandomAccessFile(folder.resolve("tier").toFile(), "rw")) {
            file.seek(2L << 20);
            file.write(new byte[32 << 10]);
        }
        CliRunner.CliResult cliResult = run("fsck");
        assertThat(cliResult.exitCode()).isOne();
        assertThat(cliResult.out())
                .contains("20 entries are lost that were durable", "the next opening forgets 1 regions")
                .doesNotContain("clean");
        try (DiskDirectory directory = open();
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            assertThat(log.keys()).isEmpty();
        }
        assertThat(run("fsck").exitCode()).isZero();
    }

    @Test
    void givenAZeroedSuperblock_whenChecked_thenItIsToldUntilItIsWrittenAnew() throws IOException {
        for (int copy = 1; copy <= 2; copy++) {
            fill(20);
            try (RandomAccessFile file =
                    new RandomAccessFile(folder.resolve("tier").toFile(), "rw")) {
                file.seek((copy - 1L) << 20);
                file.write(new byte[1 << 20]);
            }
            CliRunner.CliResult cliResult = run("fsck");
            assertThat(cliResult.exitCode()).isOne();
            assertThat(cliResult.out())
                    .contains("copy " + copy + " of 2 of the superblock is damaged", "copy " + (3 - copy) + " serves")
                    .contains("fsck --repair writes it anew, and so does the next opening")
                    .contains("every block and object has its checksum")
                    .doesNotContain("clean");
            CliRunner.CliResult repair = run("fsck", "--repair");
            assertThat(repair.exitCode()).isOne();
            assertThat(repair.out()).contains("copy " + copy + " of 2 of the superblock is written anew");
            CliRunner.CliResult again = run("fsck");
            assertThat(again.exitCode()).isZero();
            assertThat(again.out()).contains("clean: ").doesNotContain("superblock");
        }
    }

    @Test
    void givenAZeroedSuperblock_whenOpened_thenItIsWrittenAnew() throws IOException {
        fill(20);
        try (RandomAccessFile file = new RandomAccessFile(folder.resolve("tier").toFile(), "rw")) {
            file.write(new byte[1 << 20]);
        }
        fill(1);
        assertThat(run("fsck").exitCode()).isZero();
    }

    @Test
    void givenAnOverwrittenObject_whenItsNewValueIsDamagedAndRepaired_thenTheOldOneDoesNotComeBack()
            throws IOException {
        fill(1);
        long newest = openAndOverwrite();
        try (RandomAccessFile file = new RandomAccessFile(folder.resolve("tier").toFile(), "rw")) {
            file.seek(newest);
            int was = file.read();
            file.seek(newest);
            file.write(~was);
        }
        assertThat(run("fsck", "--repair").out()).contains("repaired: 1 regions");
        CliRunner.CliResult clean = run("fsck");
        assertThat(clean.exitCode()).isZero();
        try (DiskDirectory directory = open();
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            assertThat(log.keys()).isEmpty();
        }
    }

    /// Object 1 gets a new value, in the second region.
    ///
    /// @return where its bytes begin in the file
    private long openAndOverwrite() {
        try (DiskDirectory directory = open();
                DiskLogFixture log = new DiskLogFixture(directory.device(), directory.config())) {
            log.append(1, 5_000);
            log.flush();
        }
        return FIRST_OBJECT + (1L << 20);
    }

    @Test
    void givenJson_whenChecked_thenOneObjectWithAllFields() throws IOException {
        fill(20);
        damage();
        CliRunner.CliResult cliResult = run("fsck", "--json");
        assertThat(cliResult.exitCode()).isOne();
        JsonNode json = JsonMapper.builder().build().readTree(cliResult.out());
        assertThat(json.propertyNames())
                .containsExactlyInAnyOrder(
                        "formatVersion",
                        "deviceBytes",
                        "regionBytes",
                        "soundSuperblocks",
                        "damagedSuperblock",
                        "superblocksWritten",
                        "generation",
                        "disks",
                        "regions",
                        "namespaces",
                        "torn",
                        "strangeEntries",
                        "lostEntries",
                        "missingRegions",
                        "forgottenRegions",
                        "bad",
                        "repairedRegions",
                        "superblockRepaired");
        assertThat(json.get("namespaces").get(0).get("objects").asInt()).isEqualTo(19);
        assertThat(json.get("bad").asInt()).as("was flushed").isOne();
        assertThat(json.get("lostEntries").asInt()).isZero();
    }

    @Test
    void givenATier_whenInspected_thenFormatRegionsAndNamespacesAreShown() {
        fill(200);
        CliRunner.CliResult cliResult = run("inspect");
        assertThat(cliResult.exitCode()).isZero();
        assertThat(cliResult.out())
                .contains(
                        "format version 2, 8 MiB in 6 regions of 1 MiB; 2 of 2 superblocks sound",
                        "the store's disks when one last came or went: 1, generation 1",
                        "closed",
                        "free",
                        "200",
                        "objects");
        JsonNode json =
                JsonMapper.builder().build().readTree(run("inspect", "--json").out());
        assertThat(json.get("namespaces").get(0).get("objects").asInt()).isEqualTo(200);
        assertThat(json.get("namespaces").get(0).get("model").asString()).isEqualTo("objects");
    }

    @Test
    void givenADirectoryThatIsOpen_whenCheckedOrInspected_thenRefusedAndItSaysByWhom() {
        fill(1);
        try (DiskDirectory _ = open()) {
            for (String command : new String[] {"fsck", "inspect"}) {
                CliRunner.CliResult cliResult = run(command);
                assertThat(cliResult.exitCode()).isEqualTo(2);
                assertThat(cliResult.out()).isEmpty();
                assertThat(cliResult.err()).contains("kvcache " + command, folder.toString(), "has it open already");
            }
        }
    }

    @Test
    void givenNoTier_whenCheckedOrInspected_thenRefusedAndNothingIsMade() throws IOException {
        for (String command : new String[] {"fsck", "inspect"}) {
            CliRunner.CliResult cliResult = run(command);
            assertThat(cliResult.exitCode()).isEqualTo(2);
            assertThat(cliResult.err()).contains("there is no disk tier in it");
        }
        assertThat(folder).isEmptyDirectory();
        Files.writeString(folder.resolve("tier"), "somebody's");
        assertThat(run("fsck").exitCode()).isEqualTo(2);
        assertThat(run("fsck").err()).contains("something that no disk tier wrote");
    }
}

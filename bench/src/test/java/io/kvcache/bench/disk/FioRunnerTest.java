package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.bench.disk.DiskRun.AccessPattern;
import io.kvcache.bench.disk.DiskRun.IoWorkload;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;

final class FioRunnerTest {

    private static final Path FILE = Path.of("folder", "file");

    private static IoWorkload work(AccessPattern pattern) {
        return new IoWorkload(FILE, 1 << 30, 1L << 32, pattern, 1 << 20, 8);
    }

    @Test
    void givenReads_whenByUring_thenFioIsAtItsBestOnTheSameFileSizeAndDepth() {
        assertThat(FioRunner.uringCommand(work(AccessPattern.RANDOM_READ)))
                .startsWith("fio")
                .contains(
                        "--filename=" + FILE,
                        "--rw=randread",
                        "--bs=1048576",
                        "--ioengine=io_uring",
                        "--direct=1",
                        "--fixedbufs=1",
                        "--registerfiles=1",
                        "--iodepth=8",
                        "--size=1073741824",
                        "--io_size=4294967296",
                        "--allow_file_create=0",
                        "--output-format=json");
    }

    @Test
    void givenReads_whenByThreads_thenAllReadAnywhereAndShareTheBytes() {
        assertThat(FioRunner.threadsCommand(work(AccessPattern.RANDOM_READ)))
                .contains("--ioengine=psync", "--numjobs=8", "--exitall", "--size=1073741824", "--io_size=536870912")
                .noneMatch(option -> option.startsWith("--offset_increment"));
    }

    @Test
    void givenWrites_whenByThreads_thenEachHasAPartOfTheFile() {
        assertThat(FioRunner.threadsCommand(work(AccessPattern.REGION_WRITE)))
                .contains("--rw=write", "--size=134217728", "--offset_increment=134217728", "--io_size=536870912");
    }
}

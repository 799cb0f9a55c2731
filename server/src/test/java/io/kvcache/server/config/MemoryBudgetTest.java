package io.kvcache.server.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.server.config.MemoryBudget.CgroupMemoryLimit;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class MemoryBudgetTest {

    private static final long GIB = 1L << 30;

    @TempDir
    private Path root = Path.of("");

    private void file(String path, String text) throws IOException {
        Path file = root.resolve(path);
        Files.createDirectories(file.getParent());
        Files.writeString(file, text + "\n");
    }

    private CgroupMemoryLimit limit() {
        return CgroupMemoryLimit.of(root, 64 * GIB);
    }

    @Test
    void givenNoGroup_whenAsked_thenTheMachineIsTheLimit() {
        assertThat(limit()).isEqualTo(new CgroupMemoryLimit(64 * GIB, "the machine"));
    }

    @Test
    void givenGroupsOfVersion2_whenAsked_thenTheSmallestAboveCounts() throws IOException {
        file("proc/self/cgroup", "0::/kube/pod/box");
        file("sys/fs/cgroup/kube/pod/box/memory.max", "max");
        file("sys/fs/cgroup/kube/pod/memory.max", Long.toString(4 * GIB));
        file("sys/fs/cgroup/kube/memory.max", Long.toString(32 * GIB));
        assertThat(limit())
                .isEqualTo(new CgroupMemoryLimit(
                        4 * GIB,
                        root.resolve("sys/fs/cgroup/kube/pod/memory.max").toString()));
    }

    @Test
    void givenAContainerOfVersion2ThatSeesItsGroupAsTheRoot_whenAsked_thenTheRootsFileCounts() throws IOException {
        file("proc/self/cgroup", "0::/not/visible/here");
        file("sys/fs/cgroup/memory.max", Long.toString(2 * GIB));
        assertThat(limit().bytes()).isEqualTo(2 * GIB);
    }

    @Test
    void givenGroupsOfVersion1_whenAsked_thenTheMemoryControllersCounts() throws IOException {
        file("proc/self/cgroup", "9:cpu,cpuacct:/a\n7:memory:/docker/abc\n0::/");
        file("sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", Long.toString(8 * GIB));
        file("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
        assertThat(limit().bytes()).isEqualTo(8 * GIB);
    }

    @Test
    void givenFilesThatSayNothing_whenAsked_thenTheMachineIsTheLimit() throws IOException {
        file("proc/self/cgroup", "0::/../../etc");
        file("sys/fs/cgroup/memory.max", "");
        assertThat(limit().bytes()).isEqualTo(64 * GIB);
    }

    @Test
    void givenWhatFits_whenRequired_thenNothingIsSaid() {
        MemoryBudget budget = new MemoryBudget(2 * GIB, 2 * GIB, 53 * GIB, GIB / 2);
        assertThatCode(() -> budget.requireWithin(limit())).doesNotThrowAnyException();
    }

    @Test
    void givenMoreThanNineTenths_whenRequired_thenItSaysWhatWouldFit() {
        MemoryBudget budget = new MemoryBudget(2 * GIB, 2 * GIB, 54 * GIB, GIB / 2);
        assertThatThrownBy(() -> budget.requireWithin(limit()))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(
                        "heap 2.00 GiB + direct 2.00 GiB + values 54.00 GiB + records 0.50 GiB = 58.50 GiB")
                .hasMessageContaining("the machine allows")
                .hasMessageContaining("set memory.host_bytes to 54374MiB or less");
    }

    @Test
    void givenNoRoomForAnyValue_whenRequired_thenNoSizeIsSuggested() {
        MemoryBudget budget = new MemoryBudget(40 * GIB, 40 * GIB, GIB, 0);
        assertThatThrownBy(() -> budget.requireWithin(limit()))
                .hasMessageContaining("or raise the limit")
                .hasMessageNotContaining("memory.host_bytes");
    }

    @Test
    void givenThisJvm_whenItsBudgetIsMade_thenHeapAndDirectAreItsOwn() {
        MemoryBudget budget = MemoryBudget.of(3 * GIB, 3 * GIB + 5);
        assertThat(budget.heapBytes()).isEqualTo(Runtime.getRuntime().maxMemory());
        assertThat(budget.directBytes()).isPositive();
        assertThat(budget.recordBytes()).isEqualTo(5);
    }

    @Test
    void givenRecordsOfDisksThatAloneAreTooMany_whenRequired_thenTheDisksAreNamed() {
        CgroupMemoryLimit limit = new CgroupMemoryLimit(24 * GIB, "the machine");
        assertThatThrownBy(() -> new MemoryBudget(2 * GIB, 2 * GIB, 12 * GIB, 111 * GIB).requireWithin(limit))
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(": give disks and GPUs fewer bytes, ");
        assertThatThrownBy(() -> new MemoryBudget(2 * GIB, 2 * GIB, 23 * GIB, GIB).requireWithin(limit))
                .hasMessageContaining(": set memory.host_bytes to ")
                .hasMessageNotContaining("disks");
    }
}

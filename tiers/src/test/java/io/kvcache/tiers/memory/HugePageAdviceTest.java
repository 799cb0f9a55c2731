package io.kvcache.tiers.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.kvcache.tiers.memory.MappedMemorySource.HugePageAdvice;
import io.kvcache.tiers.options.MemoryOptions;
import io.kvcache.tiers.options.MemoryOptions.Backing;
import io.kvcache.tiers.options.MemoryOptions.HugePages;
import io.kvcache.tiers.os.Libc;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
class HugePageAdviceTest {

    @TempDir
    private Path settings;

    @Test
    void givenKernelThatSaysNever_whenHugePagesAreAMust_thenTheErrorNamesTheSwitch() throws IOException {
        Files.writeString(settings.resolve("enabled"), "always madvise [never]\n");
        assertThatIllegalStateException()
                .isThrownBy(() -> reserve(HugePages.ON, Backing.ANONYMOUS))
                .withMessageContaining(settings.resolve("enabled") + " says always madvise [never]");
    }

    @Test
    void givenKernelThatSaysNever_whenHugePagesAreAWish_thenSaysThatPagesAreSmall() throws IOException {
        Files.writeString(settings.resolve("enabled"), "always madvise [never]\n");
        assertThat(reserve(HugePages.AUTO, Backing.ANONYMOUS)).startsWith("anonymous, small pages, as ");
    }

    @Test
    void givenSharedMemory_whenAdvised_thenTheSwitchOfSharedMemoryCounts() throws IOException {
        Files.writeString(settings.resolve("enabled"), "[always] madvise never\n");
        Files.writeString(settings.resolve("shmem_enabled"), "always advise never [deny] force\n");
        assertThatIllegalStateException()
                .isThrownBy(() -> reserve(HugePages.ON, Backing.MEMFD))
                .withMessageContaining("[deny]");
    }

    @Test
    void givenKernelWithoutHugePages_whenTheyAreAMust_thenSaysSo() {
        assertThatIllegalStateException()
                .isThrownBy(() -> reserve(HugePages.ON, Backing.ANONYMOUS))
                .withMessageContaining("this kernel has no ");
    }

    @Test
    void givenOff_whenReserved_thenPagesAreSmallWhateverTheKernelSays() {
        assertThat(reserve(HugePages.OFF, Backing.ANONYMOUS)).isEqualTo("anonymous, small pages");
    }

    private String reserve(HugePages hugePages, Backing backing) {
        Libc libc = Libc.system();
        MemoryOptions options = MemoryOptions.defaults().withBacking(backing).withHugePages(hugePages);
        MappedMemorySource source = new MappedMemorySource(options, libc, new HugePageAdvice(libc, settings));
        try (MappedMemory memory = source.reserve("slots", 4 << 20)) {
            return memory.describe();
        }
    }
}

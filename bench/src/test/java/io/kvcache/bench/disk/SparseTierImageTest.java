package io.kvcache.bench.disk;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import io.kvcache.core.spi.HostMemory;
import io.kvcache.core.spi.HostMemorySource;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.memory.MappedMemorySource;
import io.kvcache.tiers.options.MemoryOptions;
import java.lang.foreign.MemorySegment;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

@EnabledOnOs(OS.LINUX)
final class SparseTierImageTest {

    private static final long BYTES = 64L << 20;

    @TempDir
    private Path folder;

    @Test
    void givenBlocksThatDoNotFitARegion_whenFilled_thenItsMemoryIsReleasedAndItsFileIsGone() {
        RecordingSource memory = new RecordingSource();
        int tooLarge = (int) DiskGeometry.of(BYTES).regionBytes();
        assertThatIllegalArgumentException().isThrownBy(() -> SparseTierImage.create(folder, BYTES, tooLarge, memory));
        assertThat(memory.reserved)
                .isNotEmpty()
                .noneMatch(segment -> segment.scope().isAlive());
        assertThat(folder).isEmptyDirectory();
    }

    /// Maps memory, and remembers it.
    private static final class RecordingSource implements HostMemorySource {

        private final HostMemorySource mapped = new MappedMemorySource(MemoryOptions.defaults());
        private final List<MemorySegment> reserved = new ArrayList<>();

        @Override
        public HostMemory reserve(String purpose, long bytes) {
            HostMemory memory = mapped.reserve(purpose, bytes);
            reserved.add(memory.segment());
            return memory;
        }
    }
}

package io.kvcache.tiers.device;

import static io.kvcache.tiers.device.BlockDevice.ALIGNMENT;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.LongStream;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;

class MemoryDeviceTest {

    private final MemorySegment storage = MemorySegment.ofArray(new byte[1 << 20]);

    @Nested
    class Contract extends BlockDeviceContract {
        @Override
        protected BlockDevice open(long size, int depth) {
            return MemoryDevice.create(storage.asSlice(0, size), depth);
        }
    }

    @Nested
    class Misuse extends BlockDeviceMisuseContract {
        @Override
        protected BlockDevice open(long size, int depth) {
            return MemoryDevice.create(storage.asSlice(0, size), depth);
        }
    }

    @Test
    void givenOperations_whenPolled_thenTheyEndInTheirOrderAndNotBefore() {
        List<Long> tags = new ArrayList<>();
        try (Arena arena = Arena.ofConfined();
                BlockDevice device = MemoryDevice.create(storage, 8)) {
            MemorySegment page = arena.allocate(ALIGNMENT, ALIGNMENT);
            page.fill((byte) 5);
            device.write(page, 0, 1);
            device.sync(2);
            device.read(page, 0, 3);
            device.submit();
            assertThat(storage.get(JAVA_BYTE, 0)).isZero();
            device.poll((tag, _) -> tags.add(tag));
        }
        assertThat(tags)
                .containsExactlyElementsOf(LongStream.of(1, 2, 3).boxed().toList());
        assertThat(storage.get(JAVA_BYTE, 0)).isEqualTo((byte) 5);
    }

    @Test
    void givenSizeOrDepthOutOfRange_whenMade_thenTheErrorNamesIt() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> MemoryDevice.create(storage.asSlice(0, 5000), 1))
                .withMessage("size of a device must be a positive multiple of 4096, is 5000");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> MemoryDevice.create(storage, 0))
                .withMessage("depth must be from 1 to 1024, is 0");
    }
}

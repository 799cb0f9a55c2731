package io.kvcache.transport.shm;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/// How many regions of all clients a process maps at a time.
@EnabledOnOs(OS.LINUX)
final class HostRegionTest {

    private final Path file;
    private final Deque<HostRegion> open = new ArrayDeque<>();

    HostRegionTest() throws IOException {
        file = Files.createTempFile(Path.of("/dev/shm"), "kvcache-region", ".pool");
        Files.write(file, new byte[4096]);
    }

    @AfterEach
    void close() throws IOException {
        open.forEach(HostRegion::close);
        while (Files.readString(Path.of("/proc/self/maps")).contains(file.toString())) {
            LockSupport.parkNanos(1_000_000);
        }
        Files.delete(file);
    }

    @Test
    @Tag("slow")
    void givenAsManyRegionsAsMayBe_whenOneIsClosed_thenAnotherHasRoom() throws IOException {
        while (open.size() < HostRegion.MAX_MAPPED) {
            open.add(HostRegion.open(file.toString()));
        }
        assertThatThrownBy(() -> HostRegion.open(file.toString()))
                .isInstanceOf(HostRegion.TooManyRegionsException.class)
                .hasMessage("4096 regions of all clients are mapped; allowed: 4096");
        open.remove().close();
        open.add(HostRegion.open(file.toString()));
    }
}

package io.kvcache.tiers.directory;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Repetitions;
import io.kvcache.tiers.device.BlockDevice;
import io.kvcache.tiers.device.FileDevice;
import io.kvcache.tiers.device.FileDeviceOptions;
import io.kvcache.tiers.device.FileDeviceOptions.DirectIo;
import io.kvcache.tiers.device.MemoryDevice;
import io.kvcache.tiers.device.OverlayDevice;
import io.kvcache.tiers.device.RecordingDevice;
import io.kvcache.tiers.disk.DiskGeometry;
import io.kvcache.tiers.disk.DiskLogConfig;
import io.kvcache.tiers.disk.DiskLogFixture;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.io.TempDir;

/// The power goes at every sync of a run, and what is left is opened from a file: whatever a flush had promised
/// by then is there, what was buried by then is not, and nothing is wrong.
@EnabledOnOs(OS.LINUX)
final class PowerLossTest {

    private static final long BYTES = 8L << 20;
    private static final DiskLogConfig CONFIG = DiskLogConfig.of(DiskGeometry.of(BYTES), 0xABCDEF);
    private static final long SEED = 77;
    private static final int VARIANTS = Repetitions.usualOrFull(1, 2);

    private final SplittableRandom random = new SplittableRandom(SEED);
    private final Arena arena = Arena.ofShared();
    private final MemorySegment image = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
    private final List<Promise> promises = new ArrayList<>();
    private final Map<Long, Integer> gone = new HashMap<>();

    @TempDir
    private Path folder;

    /// Promise of a flush that was answered after so many events.
    private record Promise(int events, Set<Long> present, Set<Long> buried) {}

    @AfterEach
    void close() {
        arena.close();
    }

    @Test
    @Tag("slow")
    void givenARun_whenThePowerGoesAtAnySync_thenWhatWasFlushedIsThereAndNothingIsWrong() throws IOException {
        RecordingDevice device = record();
        assertThat(device.boundaries()).hasSizeGreaterThan(80);
        assertThat(promises).hasSizeGreaterThan(15);
        assertThat(gone).as("buried, and reclaimed").hasSizeGreaterThan(promises.size() + 20);
        int cuts = 0;
        for (int boundary : device.boundaries()) {
            for (int variant = 0; variant < VARIANTS; variant++) {
                device.replay(boundary, random, image);
                require(boundary);
                cuts++;
            }
        }
        System.out.println("power loss: " + cuts + " cuts of a run of " + device.events() + " events");
    }

    /// Appends, buries and flushes, in three openings, until the tier is full and some of it was reclaimed.
    private RecordingDevice record() {
        MemorySegment storage = arena.allocate(BYTES, DiskGeometry.PAGE_BYTES);
        RecordingDevice device = new RecordingDevice(MemoryDevice.create(storage, 64));
        Set<Long> buried = new HashSet<>();
        long key = 1;
        for (int opening = 0; opening < 3; opening++) {
            int start = device.events();
            Set<Long> before = promises.isEmpty() ? Set.of() : promises.getLast().present;
            try (DiskLogFixture log = new DiskLogFixture(device, CONFIG)) {
                before.stream().filter(each -> !log.keys().contains(each)).forEach(each -> gone.put(each, start));
                log.setReclaimListener(each -> gone.put(each, device.events()));
                for (int flush = 0; flush < 8; flush++) {
                    for (int i = 0; i < 12; i++) {
                        log.append(key++, 1 + random.nextInt(50_000));
                    }
                    log.settle();
                    long victim = log.keys().stream()
                            .skip(random.nextInt(log.keys().size()))
                            .findFirst()
                            .orElseThrow();
                    gone.put(victim, device.events());
                    log.appendTombstone(victim);
                    buried.add(victim);
                    log.flush();
                    promises.add(new Promise(device.events(), log.keys(), new HashSet<>(buried)));
                }
            }
        }
        return device;
    }

    private void require(int events) throws IOException {
        Path file = folder.resolve("tier");
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE)) {
            channel.write(image.asByteBuffer(), 0);
        }
        try (BlockDevice device = FileDevice.open(
                        FileDeviceOptions.of(file, BYTES).withDepth(64).withDirect(DirectIo.OFF));
                DiskLogFixture log = new DiskLogFixture(new OverlayDevice(device), CONFIG)) {
            assertThat(log.readAll())
                    .as("good of those found")
                    .isEqualTo(log.keys().size());
            promises.stream().filter(promise -> promise.events <= events).forEach(promise -> {
                assertThat(log.keys()).doesNotContainAnyElementsOf(promise.buried);
                Set<Long> missing = new HashSet<>(promise.present);
                missing.removeAll(log.keys());
                missing.removeAll(log.reclaimed());
                missing.removeIf(key -> gone.getOrDefault(key, events + 1) <= events);
                assertThat(missing)
                        .as("flushed before event %d, lost at %d", promise.events, events)
                        .isEmpty();
            });
        }
    }
}

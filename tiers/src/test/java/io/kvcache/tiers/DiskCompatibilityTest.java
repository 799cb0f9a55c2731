package io.kvcache.tiers;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.baseline.Baseline;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import java.util.zip.ZipOutputStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The directory of a disk that the build of 2026-11-29 wrote: format 2 has to open, whatever the code looks like.
///
/// `-Dkvcache.baseline.record=true` writes the directory again, for a change of the format.
@Tag(Baseline.RECORDED_TAG)
final class DiskCompatibilityTest {

    private static final BlockShape SHAPE = BlockShape.kv(1, 1, 128, 4, Dtype.BF16);
    private static final Namespace SPACE = Namespace.of("older", SHAPE);
    private static final Namespace THINGS = Namespace.objects("things", "");
    private static final String ARCHIVE = "older-disk.zip";
    private static final long DISK_BYTES = 16 << 20;
    private static final Duration A_MINUTE = Duration.ofMinutes(1);
    private static final List<Integer> OBJECT_BYTES = List.of(1, 4095, 4096, 4097, 20_000);
    private static final int DROPPED = 2;

    @TempDir
    private Path folder;

    private static BlockChain chain(int number, int blocks) {
        return BlockChain.of(
                SPACE,
                IntStream.range(0, blocks * SHAPE.blockTokens())
                        .map(token -> 1000 * number + token)
                        .toArray());
    }

    private static byte[] object(int index) {
        return ("object " + index).getBytes(StandardCharsets.US_ASCII);
    }

    private TieredKvCache open() {
        TieredKvCache cache = TieredKvCache.builder()
                .hostBytes(64 << 20)
                .disk(folder.resolve("disk"), DISK_BYTES)
                .flushOnClose(Duration.ZERO)
                .build();
        cache.register(SPACE);
        cache.register(THINGS);
        return cache;
    }

    /// Two chains with a common start, one of which was cut; objects, one replaced and one dropped.
    private void write() throws IOException {
        try (TieredKvCache cache = open()) {
            put(cache, chain(1, 12));
            put(cache, chain(2, 7));
            for (int i = 0; i < OBJECT_BYTES.size(); i++) {
                putObject(cache, i, 0x40 + i);
            }
            assertThat(cache.flush(A_MINUTE)).isTrue();
            assertThat(cache.drop(chain(1, 12), 9)).isEqualTo(3);
            assertThat(cache.dropObject(THINGS, object(DROPPED))).isTrue();
            putObject(cache, 0, 0x7f);
            assertThat(cache.flush(A_MINUTE)).isTrue();
        }
    }

    private static void put(KvCache cache, BlockChain chain) {
        for (int i = 0; i < chain.length(); i++) {
            try (BlockWriter writer = cache.put(chain, i, 0, A_MINUTE)) {
                assertThat(writer.outcome()).isEqualTo(PutOutcome.RESERVED);
                writer.segment().fill((byte) chain.key(i).lo());
                writer.seal();
            }
        }
    }

    private static void putObject(TieredKvCache cache, int index, int content) {
        byte[] value = new byte[OBJECT_BYTES.get(index)];
        Arrays.fill(value, (byte) content);
        assertThat(cache.storeObject(THINGS, object(index), MemorySegment.ofArray(value), A_MINUTE))
                .isTrue();
    }

    @Test
    void givenTheDiskOfAnOlderBuild_whenOpened_thenItHoldsWhatWasPromisedAndNothingThatWasDropped() throws IOException {
        if (Boolean.getBoolean("kvcache.baseline.record")) {
            write();
            pack();
        }
        unpack();
        try (TieredKvCache cache = open()) {
            assertThat(cache.awaitRecovered(Duration.ofMinutes(1))).isTrue();
            requireChain(cache, chain(1, 12), 9);
            requireChain(cache, chain(2, 7), 7);
            for (int i = 0; i < OBJECT_BYTES.size(); i++) {
                requireObject(cache, i, i == 0 ? 0x7f : 0x40 + i);
            }
            cache.validate();
        }
    }

    private static void requireChain(KvCache cache, BlockChain chain, int blocks) {
        try (BlockTable table = cache.acquire(chain, 0, A_MINUTE)) {
            assertThat(table.await(chain.length(), A_MINUTE)).isEqualTo(blocks);
            for (int i = 0; i < blocks; i++) {
                requireFilled(
                        table.segment(i), SHAPE.bytes(), (byte) chain.key(i).lo());
            }
        }
    }

    private static void requireObject(TieredKvCache cache, int index, int content) {
        try (ObjectView view = cache.getObject(THINGS, object(index), A_MINUTE)) {
            assertThat(view != null).as("object %d", index).isEqualTo(index != DROPPED);
            if (view != null) {
                MemorySegment value = MemorySegment.ofArray(new byte[OBJECT_BYTES.get(index)]);
                view.copyTo(0, value.byteSize(), value);
                requireFilled(value, view.bytes(), (byte) content);
            }
        }
    }

    private static void requireFilled(MemorySegment found, long bytes, byte content) {
        assertThat(found.byteSize()).isEqualTo(bytes);
        for (long at = 0; at < bytes; at++) {
            assertThat(found.get(ValueLayout.JAVA_BYTE, at)).isEqualTo(content);
        }
    }

    private void pack() throws IOException {
        Path archive = Path.of("src/test/resources/io/kvcache/tiers", ARCHIVE);
        Files.createDirectories(archive.getParent());
        try (ZipOutputStream out = new ZipOutputStream(Files.newOutputStream(archive));
                Stream<Path> files = Files.list(folder.resolve("disk"))) {
            for (Path file : files.toList()) {
                out.putNextEntry(new ZipEntry(file.getFileName().toString()));
                Files.copy(file, out);
                out.closeEntry();
                Files.delete(file);
            }
        }
    }

    private void unpack() throws IOException {
        Path disk = Files.createDirectories(folder.resolve("disk"));
        try (InputStream archive = Objects.requireNonNull(DiskCompatibilityTest.class.getResourceAsStream(ARCHIVE));
                ZipInputStream in = new ZipInputStream(archive)) {
            for (ZipEntry entry = in.getNextEntry(); entry != null; entry = in.getNextEntry()) {
                Files.copy(in, disk.resolve(entry.getName()));
            }
        }
    }
}

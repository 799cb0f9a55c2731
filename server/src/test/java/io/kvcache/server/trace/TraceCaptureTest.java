package io.kvcache.server.trace;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.core.AccessListener.LookupKind;
import io.kvcache.core.contract.ManualClock;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.spi.Clock;
import io.kvcache.server.config.ServerConfig.TraceConfig;
import io.kvcache.tiers.use.AccessQueue;
import io.kvcache.tiers.use.AccessQueue.Access;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

@Timeout(300)
final class TraceCaptureTest {

    private static final Namespace OBJECTS = Namespace.objects("secret-model", "secret-tenant");
    private static final Namespace BLOCKS = Namespace.of("secret-llama", BlockShape.kv(1, 8, 32, 16, Dtype.BF16));
    private static final Clock CLOCK = new ManualClock();

    @TempDir
    private Path folder;

    private static BlockKey key(int number) {
        return BlockKey.ofObject(OBJECTS, ("key-" + number).getBytes(StandardCharsets.US_ASCII));
    }

    private static List<JsonNode> lines(Path file) throws IOException {
        return Files.readAllLines(file).stream()
                .map(line -> JsonMapper.builder().build().readTree(line))
                .toList();
    }

    @Test
    void givenUses_whenCaptured_thenALineEachBehindTheVantagePointAndEqualKeysHaveEqualIds() throws IOException {
        Path file = folder.resolve("trace.jsonl");
        BlockChain chain = BlockChain.of(BLOCKS, new int[48]);
        try (TraceCapture capture = TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 1 << 25)) {
            capture.onAccess(chain, 0, 2, 8192);
            capture.onAccess(LookupKind.GET, OBJECTS, key(1), -1);
            capture.onPut(OBJECTS, key(1), key(0), 777, false);
            capture.onAccess(LookupKind.LOOK, OBJECTS, key(1), 0);
            capture.onAccess(LookupKind.GET, OBJECTS, key(1), 777);
        }
        List<JsonNode> lines = lines(file);
        assertThat(lines).hasSize(1 + 2 + 5 + 1);
        assertThat(lines.getFirst().get("vantage").stringValue()).contains("Not in it");
        assertThat(lines.getFirst().get("host_bytes").longValue()).isEqualTo(1 << 25);
        assertThat(lines.get(1).get("blocks").booleanValue()).isTrue();
        assertThat(lines.get(2).get("ids")).hasSize(3);
        assertThat(lines.get(2).get("found").intValue()).isEqualTo(2);
        JsonNode id = lines.get(4).get("ids");
        assertThat(lines.get(5).get("ids")).isEqualTo(id);
        assertThat(lines.get(5).get("after")).isNotEqualTo(id.get(0));
        assertThat(lines.get(7).get("ids")).isEqualTo(id);
        assertThat(lines.get(7).get("bytes").longValue()).isEqualTo(777);
        assertThat(lines.getLast().get("end").stringValue()).isEqualTo("closed");
        assertThat(Files.getPosixFilePermissions(file)).isEqualTo(PosixFilePermissions.fromString("rw-------"));
    }

    @Test
    void givenTheSameKeys_whenCapturedTwice_thenNothingOfThemShowsAndIdsDiffer() throws IOException {
        Path file = folder.resolve("trace.jsonl");
        String[] written = new String[2];
        for (int round = 0; round < 2; round++) {
            try (TraceCapture capture = TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 1 << 25)) {
                capture.onAccess(LookupKind.GET, OBJECTS, key(1), 10);
            }
            written[round] = Files.readString(file);
            assertThat(written[round])
                    .doesNotContain("secret", "key-1", Long.toString(key(1).hi()), Long.toString(key(1).lo()))
                    .doesNotContain(
                            Long.toString(key(1).hi() >>> 1), HexFormat.of().toHexDigits(key(1).hi()));
        }
        assertThat(firstIds(written[0])).isNotEqualTo(firstIds(written[1]));
    }

    @Test
    void givenATraceOfTheRunBefore_whenCapturedAgain_thenItIsKeptBeside() throws IOException {
        Path file = folder.resolve("trace.jsonl");
        Path before = folder.resolve("trace.jsonl.1");
        for (int round = 1; round <= 3; round++) {
            try (TraceCapture capture = TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 32L + round)) {
                capture.onAccess(LookupKind.GET, OBJECTS, key(1), 10);
            }
            assertThat(lines(file).getFirst().get("host_bytes").longValue()).isEqualTo(32 + round);
        }
        assertThat(lines(before).getFirst().get("host_bytes").longValue()).isEqualTo(32 + 2);
    }

    @Test
    void givenStartsOfWhichNothingCame_whenCapturedAgain_thenTheTraceBeforeThemIsKept() throws IOException {
        Path file = folder.resolve("trace.jsonl");
        try (TraceCapture capture = TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 1 << 25)) {
            capture.onAccess(LookupKind.GET, OBJECTS, key(1), 10);
        }
        String worth = Files.readString(file);
        for (int round = 0; round < 3; round++) {
            TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 1 << 25).close();
            assertThat(folder.resolve("trace.jsonl.1")).hasContent(worth);
        }
        Files.writeString(file, "");
        TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 1 << 25).close();
        assertThat(folder.resolve("trace.jsonl.1")).hasContent(worth);
    }

    @Test
    void givenAnotherFileWhereTheTraceBeforeIsToGo_whenCaptured_thenItIsRefusedAndBothStay() throws IOException {
        Path file = folder.resolve("trace.jsonl");
        try (TraceCapture capture = TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 1 << 25)) {
            capture.onAccess(LookupKind.GET, OBJECTS, key(1), 10);
        }
        String worth = Files.readString(file);
        Path other = Files.writeString(folder.resolve("trace.jsonl.1"), "a letter");
        assertThatThrownBy(() -> TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 1 << 25))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(other + ": it is there, and no trace");
        assertThat(other).hasContent("a letter");
        assertThat(file).hasContent(worth);
    }

    @Test
    void givenAnotherFileOrAFolder_whenCaptured_thenItIsRefusedAndStays() throws IOException {
        Path file = Files.writeString(folder.resolve("kvcache.yaml"), "listen: { port: 7379 }\n");
        Path empty = Files.createDirectory(folder.resolve("empty"));
        for (Path each : List.of(file, empty)) {
            assertThatThrownBy(() -> TraceCapture.start(CLOCK, new TraceConfig(each, 1 << 20), 1 << 25))
                    .isInstanceOf(IOException.class)
                    .hasMessageStartingWith("trace.out is " + each + ", ")
                    .hasMessageEndingWith("it is there, and no trace; name another file");
        }
        assertThat(file).hasContent("listen: { port: 7379 }");
        assertThat(empty).isEmptyDirectory();
    }

    private static String firstIds(String written) {
        return written.lines()
                .filter(line -> line.contains("\"ids\""))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void givenALimit_whenFull_thenTheFileKeepsToItAndSaysSo() throws Exception {
        Path file = folder.resolve("trace.jsonl");
        long limit = 8192;
        try (TraceCapture capture = TraceCapture.start(CLOCK, new TraceConfig(file, limit), 1 << 25)) {
            for (int i = 0; capture.stats().capturing(); i++) {
                capture.onAccess(LookupKind.GET, OBJECTS, key(i), 10);
                Pause.briefly();
            }
            long uses = capture.stats().uses();
            capture.onAccess(LookupKind.GET, OBJECTS, key(0), 10);
            assertThat(capture.stats().uses()).isEqualTo(uses).isGreaterThan(10);
        }
        assertThat(Files.size(file)).isLessThanOrEqualTo(limit).isGreaterThan(limit - 512);
        assertThat(lines(file).getLast().get("end").stringValue()).isEqualTo("full");
    }

    @Test
    void givenMoreThanTheQueueHolds_whenOffered_thenTheRestIsDroppedAndCounted() {
        AccessQueue queue = new AccessQueue(3);
        for (int i = 0; i < 5; i++) {
            queue.offer(new Access.KeyLookup(i, LookupKind.GET, OBJECTS, key(i), 1));
        }
        assertThat(queue.dropped()).isEqualTo(2);
        assertThat(queue.poll()).extracting(Access::atNanos).isEqualTo(0L);
        queue.offer(new Access.KeyLookup(9, LookupKind.GET, OBJECTS, key(9), 1));
        assertThat(queue.dropped()).isEqualTo(2);
        for (long at : new long[] {1, 2, 9}) {
            assertThat(queue.poll()).extracting(Access::atNanos).isEqualTo(at);
        }
        assertThat(queue.poll()).isNull();
    }

    @Test
    void givenAPlaceThatCannotBeWritten_whenStarted_thenTheErrorNamesSettingAndFile() {
        Path file = folder.resolve("nowhere").resolve("trace.jsonl");
        assertThatThrownBy(() -> TraceCapture.start(CLOCK, new TraceConfig(file, 1 << 20), 1 << 25))
                .isInstanceOf(IOException.class)
                .hasMessageContaining("trace.out is " + file);
        assertThatThrownBy(() -> new TraceConfig(null, 1))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("trace.bytes is 1; it takes 4096 and up");
    }
}

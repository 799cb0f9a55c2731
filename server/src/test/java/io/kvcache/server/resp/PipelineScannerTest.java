package io.kvcache.server.resp;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.resp.CommandTable.PipelineScanner;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.SplittableRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The keys of requests that have come together are found before they are decoded, and nothing else is.
final class PipelineScannerTest {

    private static final SplittableRandom RANDOM = new SplittableRandom(1);

    private static List<String> scan(String input) {
        ByteBuf in = Unpooled.copiedBuffer(input, StandardCharsets.ISO_8859_1);
        List<byte[]> keys = PipelineScanner.keys(in);
        assertThat(in.readerIndex()).as("bytes taken").isZero();
        return keys.stream()
                .map(key -> new String(key, StandardCharsets.ISO_8859_1))
                .toList();
    }

    private static String request(String... words) {
        StringBuilder text = new StringBuilder("*" + words.length + "\r\n");
        for (String word : words) {
            text.append('$').append(word.length()).append("\r\n").append(word).append("\r\n");
        }
        return text.toString();
    }

    private static String gets(int count) {
        return IntStream.range(0, count)
                .mapToObj(i -> request("GET", "key:" + i))
                .collect(Collectors.joining());
    }

    @Test
    void givenManyRequests_whenScanned_thenTheFirstSixteenKeysInOrder() {
        assertThat(scan(gets(40)))
                .isEqualTo(IntStream.range(0, 16).mapToObj(i -> "key:" + i).toList());
    }

    @Test
    void givenRequestsWithValues_whenScanned_thenKeysOnly() {
        String input = request("SET", "a", "*2\r\n$3\r\nGET\r\n$1\r\nx\r\n")
                + request("GET", "b")
                + request("SET", "c", "v".repeat(500), "EX", "10")
                + request("EXISTS", "d", "e");
        assertThat(scan(input)).containsExactly("a", "b", "c", "d");
    }

    @Test
    void givenTheLastRequestIsNotWhole_whenScanned_thenItIsLeftOut() {
        String whole = gets(8);
        String all = whole + request("SET", "late", "v".repeat(50));
        for (int length = whole.length(); length < all.length(); length++) {
            assertThat(scan(all.substring(0, length))).hasSize(8);
        }
        assertThat(scan(all)).hasSize(9).endsWith("late");
    }

    @Test
    void givenFewBytes_whenScanned_thenNothing() {
        assertThat(scan(gets(3))).isEmpty();
    }

    @Test
    void givenOtherInput_whenScanned_thenTheSearchEnds() {
        assertThat(scan(gets(6) + "PING\r\n" + gets(6))).hasSize(6);
        assertThat(scan(gets(6) + request("PING") + gets(6))).hasSize(6);
        assertThat(scan(gets(6) + "*2\r\n$3\r\nGET\r\n$9999999\r\n" + gets(6))).hasSize(6);
        assertThat(scan(gets(6) + "*2\r\n$-1\r\n" + gets(6))).hasSize(6);
        assertThat(scan(gets(6) + request("GET", "k".repeat(129)) + gets(6))).hasSize(6);
        assertThat(scan(gets(6) + request("GET", "") + gets(6))).hasSize(6);
    }

    @Test
    void givenAnyBytes_whenScanned_thenItEnds() {
        String letters = "*$\r\n0123456789GET";
        for (int run = 0; run < 20_000; run++) {
            String noise = RANDOM.ints(RANDOM.nextInt(200), 0, letters.length())
                    .mapToObj(i -> letters.substring(i, i + 1))
                    .collect(Collectors.joining());
            assertThat(scan(gets(4) + noise)).hasSizeBetween(0, PipelineScanner.MAX_KEYS);
        }
    }
}

package io.kvcache.server.net;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.Listener.ProtocolDetector.ProtocolSniffer;
import io.kvcache.server.net.Protocol.ProtocolKind;
import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ProtocolSnifferTest {

    @ParameterizedTest
    @CsvSource({
        "'*1\r\n', RESP",
        "'PING\r\n', RESP",
        "'get key\n', RESP",
        "'\r\n', RESP",
        "'GET /v1/stats HTTP/1.1\r\n', HTTP",
        "'PUT /v1/objects/a HTTP/1.0\r\nHost: x\r\n', HTTP",
        "'GET HTTP/1.1\r\n', HTTP",
        "'set k HTTP/1.\r\n', RESP",
        "'\1\0\0\0', LM",
        "'\5\0\0\0more', LM",
        "'\26\3\1\2', ",
        "'\1\1\0\0', ",
        "'\6\0\0\0', ",
        "'\200abc\n', "
    })
    void givenFirstBytes_whenLookedAtOneByOne_thenTheProtocolIsTold(String text, @Nullable ProtocolKind expected) {
        byte[] bytes = text.getBytes(StandardCharsets.ISO_8859_1);
        ProtocolSniffer.Detection detection = ProtocolSniffer.Detection.NEEDS_MORE;
        for (int known = 0; known <= bytes.length && detection.needsMore(); known++) {
            detection = ProtocolSniffer.detect(Unpooled.wrappedBuffer(Arrays.copyOf(bytes, known)));
        }
        assertThat(detection.needsMore()).isFalse();
        assertThat(detection.kind()).isEqualTo(expected);
    }

    @ParameterizedTest
    @CsvSource({"'GET /aaa', HTTP", "'set aaa', "})
    void givenALineThatDoesNotEnd_whenItIsTooLong_thenOnlyAPathIsHttp(String start, @Nullable ProtocolKind expected) {
        byte[] bytes = (start + "a".repeat(ProtocolSniffer.MAX_BYTES)).getBytes(StandardCharsets.ISO_8859_1);
        assertThat(ProtocolSniffer.detect(Unpooled.wrappedBuffer(bytes)).kind()).isEqualTo(expected);
    }
}

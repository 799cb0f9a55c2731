package io.kvcache.server.forward;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.netty.buffer.Unpooled;
import java.nio.charset.StandardCharsets;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class HttpReplyFramerTest {

    private static boolean isEnd(ReplyFramer framer, String bytes) {
        return framer.isEnd(Unpooled.copiedBuffer(bytes, StandardCharsets.ISO_8859_1));
    }

    @ParameterizedTest
    @CsvSource({
        "GET, '200 OK|content-type: a|Content-Length: 3||abc'",
        "GET, '200 OK|content-length: 0||'",
        "GET, '204 No Content||'",
        "GET, '304 Not Modified|etag: \"a\"||'",
        "HEAD, '200 OK|content-length: 3||'",
        "GET, '404 Not Found|content-length: 39|x: y||content-length: 1|||||||||||'"
    })
    void givenAReply_whenCutAnywhere_thenItEndsWithItsLastByte(String method, String lines) {
        String reply = "HTTP/1.1 " + lines.replace("|", "\r\n");
        for (int cut = 1; cut < reply.length(); cut++) {
            ReplyFramer framer = new ReplyFramer.Http(!method.equals("HEAD"));
            assertThat(isEnd(framer, reply.substring(0, cut))).as("%d", cut).isFalse();
            assertThat(isEnd(framer, reply.substring(cut))).as("%d", cut).isTrue();
            ReplyFramer more = new ReplyFramer.Http(!method.equals("HEAD"));
            assertThatThrownBy(() -> isEnd(more, reply + "x"))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("1 bytes behind the end of a reply");
        }
    }

    @Test
    void givenWhatIsNoReply_whenLookedAt_thenItIsRefused() {
        assertThatThrownBy(() ->
                        isEnd(new ReplyFramer.Http(true), "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"))
                .hasMessageContaining("without Content-Length");
        assertThatThrownBy(() -> isEnd(new ReplyFramer.Http(true), "x".repeat(20_000)))
                .hasMessageContaining("more than 16384 bytes");
    }
}

package io.kvcache.server.http;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;

/// Random requests, some of them malformed.
public final class HttpRequestGenerator {

    private static final List<String> METHODS = List.of("GET", "PUT", "HEAD", "DELETE", "POST", "OPTIONS", "NOSUCH");
    private static final String HINTS = "/v1/hints";
    private static final List<String> HINT_MEMBERS = List.of(
            "\"expect\"",
            "\"return\",\"milliseconds\":5",
            "\"forget\"",
            "\"pin\",\"milliseconds\":1000",
            "\"unpin\"",
            "\"label\",\"kind\":\"chat\",\"turn\":\"later\"",
            "\"session\",\"kind\":\"agent\",\"session\":3,\"turn\":1",
            "\"session\",\"kind\":\"agent\",\"session\":3,\"turn\":2,\"last\":true",
            "\"session\",\"kind\":\"agent\",\"session\":9223372036854775808,\"turn\":-1,\"last\":{}",
            "\"weigh\",\"weight\":0.5",
            "\"expire\",\"milliseconds\":0");
    private static final List<String> PATHS = List.of(
            "/v1/objects/a",
            "/v1/objects/%00%ff",
            "/v1/objects/%zz",
            "/v1/objects/",
            "/page",
            "*",
            "/%",
            "/v1/objects/b",
            "/v1/prefix",
            HINTS);
    private static final List<String> HEADERS = List.of(
            "Host: localhost",
            "Host: [::1",
            "Host: a.b",
            "Origin: http://x",
            "Range: bytes=1-",
            "Range: bytes=-",
            "Expect: 100-continue",
            "Connection: close",
            "Transfer-Encoding: chunked",
            "Content-Length: -1",
            "Content-Length: 99999999999",
            "Content-Length: 2147483648",
            "X: \001",
            "X: a\r\n b",
            "If-Match: \"a\", W/\"b\"",
            "If-None-Match: *",
            "If-Range: \"a\"",
            "Content-Range: bytes 0-1/2",
            "Range: bytes=9999999999999999999-");

    private HttpRequestGenerator() {}

    /// One of them, now and then with a byte changed.
    public static byte[] randomFrame(Random random) {
        byte[] frame = request(random);
        if (random.nextInt(4) == 0) {
            frame[random.nextInt(Math.min(frame.length, 80))] = (byte) random.nextInt(256);
        }
        return frame;
    }

    /// A request as it should be, but for what it asks.
    public static byte[] request(Random random) {
        String path = PATHS.get(random.nextInt(PATHS.size()));
        return path.equals(HINTS) && random.nextBoolean() ? hint(random) : request(path, random);
    }

    /// A hint that is taken, or has a number that cannot be.
    private static byte[] hint(Random random) {
        String body = "{\"hint\":" + HINT_MEMBERS.get(random.nextInt(HINT_MEMBERS.size())) + ",\"keys\":[\"a\",\"b\"]}";
        String head = "POST " + HINTS + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + body.length() + "\r\n\r\n";
        return (head + body).getBytes(StandardCharsets.ISO_8859_1);
    }

    private static byte[] request(String path, Random random) {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        StringBuilder head = new StringBuilder()
                .append(METHODS.get(random.nextInt(METHODS.size())))
                .append(' ')
                .append(path)
                .append(" HTTP/1.1\r\nHost: localhost\r\n");
        for (int i = random.nextInt(3); i > 0; i--) {
            head.append(HEADERS.get(random.nextInt(HEADERS.size()))).append("\r\n");
        }
        byte[] body = new byte[random.nextInt(3) == 0 ? random.nextInt(2) == 0 ? 16 : random.nextInt(5000) : 0];
        if (body.length > 0) {
            head.append("Content-Length: ").append(body.length).append("\r\n");
        }
        out.writeBytes(head.append("\r\n").toString().getBytes(StandardCharsets.ISO_8859_1));
        out.writeBytes(body);
        return out.toByteArray();
    }
}

package io.kvcache.server;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.zip.GZIPInputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/// The console's pages, as a browser and pages of other sites ask for them.
@Tag("slow")
final class ConsoleFilesTest {

    private static final String LINK =
            "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    private static final int MAX_COMPRESSED_BYTES = 300 << 10;

    private final TestServer server = TestServer.start(TransportKind.AUTO);

    @AfterEach
    void stop() {
        server.close();
    }

    private String get(String path, String headers) throws IOException {
        String host = headers.contains("Host: ") ? "" : "Host: localhost\r\n";
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream()
                    .write(("GET " + path + " HTTP/1.1\r\nConnection: close\r\n" + host + headers + "\r\n")
                            .getBytes(UTF_8));
            return new String(socket.getInputStream().readAllBytes(), ISO_8859_1);
        }
    }

    private static String body(String reply) {
        return reply.substring(reply.indexOf("\r\n\r\n") + 4);
    }

    @Test
    void givenABrowserAtTheRoot_whenItFollows_thenItComesToTheConsoleByRelativePaths() throws IOException {
        assertThat(get("/", "")).startsWith("HTTP/1.1 302 ").contains("location: console/\r\n");
        assertThat(get("/console", "")).startsWith("HTTP/1.1 302 ").contains("location: console/\r\n");
        assertThat(get("/console/", ""))
                .startsWith("HTTP/1.1 200 ")
                .contains("content-type: text/html; charset=utf-8\r\n")
                .contains("content-security-policy: default-src 'none'; script-src 'self'; style-src 'self';")
                .contains("x-content-type-options: nosniff\r\n");
        assertThat(get("/console/", "Accept-Encoding: gzip\r\n"))
                .contains("content-encoding: gzip\r\n")
                .contains("vary: accept-encoding\r\n");
    }

    /// Follows what pages, scripts and styles name.
    private Set<String> allFiles() throws IOException {
        Set<String> files = new TreeSet<>(Set.of("index.html"));
        Set<String> unread = new TreeSet<>(files);
        Pattern reference = Pattern.compile(
                "(?:src|href)(?:=|: )[\"']([^\"'#:]+)[\"']|(?:from|import)\\s*\\(?['\"]\\./([^'\"]+)['\"]");
        while (!unread.isEmpty()) {
            String file = unread.iterator().next();
            unread.remove(file);
            String reply = get("/console/" + file, "");
            assertThat(reply).as(file).startsWith("HTTP/1.1 200 ");
            Matcher found = file.startsWith("lib/") ? reference.matcher("") : reference.matcher(body(reply));
            while (found.find()) {
                String name = found.group(1) == null ? found.group(2) : found.group(1);
                if (files.add(name)) {
                    unread.add(name);
                }
            }
        }
        return files;
    }

    @Test
    void givenAllFilesOfTheConsole_whenRead_thenTheyAreFewKilobytesAndNameNoOtherHost() throws IOException {
        int compressed = 0;
        Set<String> files = allFiles();
        assertThat(files).contains("lib/bootstrap.min.css", "lib/chart.umd.min.js", "console.css");
        for (String file : files) {
            String zipped = body(get("/console/" + file, "Accept-Encoding: gzip\r\n"));
            compressed += zipped.length();
            try (GZIPInputStream in = new GZIPInputStream(new ByteArrayInputStream(zipped.getBytes(ISO_8859_1)))) {
                String text = new String(in.readAllBytes(), UTF_8);
                assertThat(text)
                        .isEqualTo(new String(body(get("/console/" + file, "")).getBytes(ISO_8859_1), UTF_8));
                if (!file.startsWith("lib/")) {
                    assertThat(text).as(file).doesNotContain("https://").doesNotContain("innerHTML");
                }
            }
        }
        assertThat(compressed).isLessThan(MAX_COMPRESSED_BYTES);
    }

    @Test
    void givenAFileThatIsKnown_whenAskedForAgain_thenNotModified() throws IOException {
        String first = get("/console/console.css", "");
        Matcher tag = Pattern.compile("etag: (.*)\r\n").matcher(first);
        assertThat(tag.find()).isTrue();
        String second = get("/console/console.css", "If-None-Match: " + tag.group(1) + "\r\n");
        assertThat(second).startsWith("HTTP/1.1 304 ");
        assertThat(body(second)).isEmpty();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/console/none.js",
                "/console/ConsoleFiles.class",
                "/console/../v1/stats",
                "/console/lib/../index.html",
                "/console/lib/bootstrap.min.css.map",
                "/console/%2e%2e/x.js",
                "/console//index.html"
            })
    void givenAFileThatIsNoneOfTheConsole_whenAskedFor_thenNotFound(String path) throws IOException {
        assertThat(get(path, "")).startsWith("HTTP/1.1 404 ");
    }

    @Test
    void givenAPageOfAnotherSite_whenItReachesForTheServer_thenItMayOnlyLinkToTheConsole() throws IOException {
        assertThat(get("/console/", LINK)).startsWith("HTTP/1.1 200 ");
        assertThat(get("/v1/console", LINK)).startsWith("HTTP/1.1 403 ");
        assertThat(get("/v1/settings", "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\n"))
                .startsWith("HTTP/1.1 403 ");
        assertThat(get(
                        "/console/",
                        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe\r\n"))
                .startsWith("HTTP/1.1 403 ");
        assertThat(get("/console/", "Host: rebound.example\r\n" + LINK)).startsWith("HTTP/1.1 403 ");
        assertThat(get("/v1/misses", "Host: rebound.example\r\n")).startsWith("HTTP/1.1 403 ");
        assertThat(get("/v1/misses", "Origin: http://other.example\r\n")).startsWith("HTTP/1.1 403 ");
    }
}

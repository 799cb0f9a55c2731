package io.kvcache.server;

import static io.kvcache.server.DiskTestServer.VALUES;
import static io.kvcache.server.DiskTestServer.ascii;
import static io.kvcache.server.DiskTestServer.lmRequest;
import static io.kvcache.server.DiskTestServer.value;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.contract.Pause;
import io.kvcache.server.cli.CliRunner;
import io.kvcache.server.cli.CliRunner.CliResult;
import io.kvcache.server.lm.LmTestClient;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import redis.clients.jedis.Jedis;

/// Values that are on disk alone, over each protocol.
@Tag("slow")
final class DiskValuesTest {

    @TempDir
    private Path folder = Path.of("");

    private static void expectBulk(InputStream in, int number) throws IOException {
        byte[] value = value(number);
        byte[] head = ascii("$" + value.length + "\r\n");
        assertThat(in.readNBytes(head.length)).isEqualTo(head);
        assertThat(Arrays.equals(in.readNBytes(value.length), value))
                .as("value " + number)
                .isTrue();
        assertThat(in.readNBytes(2)).isEqualTo(ascii("\r\n"));
    }

    @Test
    @Tag("slow")
    void givenMoreThanMemoryHolds_whenReadOverEachProtocol_thenAllComesBackInOrder() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder)) {
            server.fill();
            pipelinedGets(server);
            multipleGet(server);
            lm(server);
            http(server);
            server.server().cache().validate();
        }
    }

    @Test
    void givenMoreThanMemoryHolds_whenAPrefixIsCounted_thenValuesOnDiskCountAndAreNotLoaded() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder);
                Socket socket = server.connect()) {
            server.fill();
            long before = server.loaded();
            StringBuilder request = new StringBuilder("KV.PREFIX 60000");
            for (int number = 0; number < VALUES; number++) {
                request.append(" v").append(number);
            }
            socket.getOutputStream().write(ascii(request + " none\r\n"));
            byte[] reply = ascii(":" + VALUES + "\r\n");
            assertThat(socket.getInputStream().readNBytes(reply.length)).isEqualTo(reply);
            assertThat(server.server().cache().hintStats().pins()).isBetween(1L, VALUES / 2L);
            assertThat(server.loaded()).isEqualTo(before);
        }
    }

    private static void pipelinedGets(DiskTestServer server) throws IOException {
        long before = server.loaded();
        try (Socket socket = server.connect()) {
            StringBuilder requests = new StringBuilder();
            for (int number = 0; number < VALUES; number++) {
                requests.append("GET v")
                        .append(number)
                        .append("\r\nSTRLEN v")
                        .append(number)
                        .append("\r\n");
            }
            socket.getOutputStream().write(ascii(requests + "GET none\r\nPING\r\n"));
            byte[] length = ascii(":" + value(0).length + "\r\n");
            for (int number = 0; number < VALUES; number++) {
                expectBulk(socket.getInputStream(), number);
                assertThat(socket.getInputStream().readNBytes(length.length)).isEqualTo(length);
            }
            assertThat(socket.getInputStream().readNBytes(12)).isEqualTo(ascii("$-1\r\n+PONG\r\n"));
        }
        assertThat(server.loaded()).isGreaterThan(before);
    }

    private static void multipleGet(DiskTestServer server) throws IOException {
        long before = server.loaded();
        try (Socket socket = server.connect()) {
            StringBuilder request = new StringBuilder("MGET");
            for (int number = 0; number < VALUES; number++) {
                request.append(" v").append(number);
            }
            socket.getOutputStream().write(ascii(request + "\r\nGETRANGE v0 1 3\r\n"));
            byte[] head = ascii("*" + VALUES + "\r\n");
            assertThat(socket.getInputStream().readNBytes(head.length)).isEqualTo(head);
            for (int number = 0; number < VALUES; number++) {
                expectBulk(socket.getInputStream(), number);
            }
            assertThat(socket.getInputStream().readNBytes(4)).isEqualTo(ascii("$3\r\n"));
            assertThat(socket.getInputStream().readNBytes(3)).isEqualTo(Arrays.copyOfRange(value(0), 1, 4));
        }
        assertThat(server.loaded()).isGreaterThan(before);
    }

    private static void lm(DiskTestServer server) throws IOException {
        long before = server.loaded();
        try (Socket socket = server.connect()) {
            for (int number = 0; number < VALUES; number++) {
                socket.getOutputStream().write(lmRequest(LmTestClient.GET, "v" + number));
            }
            for (int number = 0; number < VALUES; number++) {
                ByteBuffer head =
                        ByteBuffer.wrap(socket.getInputStream().readNBytes(36)).order(ByteOrder.LITTLE_ENDIAN);
                assertThat(head.getInt()).isEqualTo(200);
                byte[] value = value(number);
                assertThat(head.getInt()).isEqualTo(value.length);
                assertThat(Arrays.equals(socket.getInputStream().readNBytes(value.length), value))
                        .isTrue();
            }
        }
        assertThat(server.loaded()).isGreaterThan(before);
    }

    private static void http(DiskTestServer server) throws IOException, InterruptedException {
        long before = server.loaded();
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            for (int number = 0; number < VALUES; number++) {
                HttpResponse<byte[]> reply = client.send(
                        HttpRequest.newBuilder(
                                        URI.create("http://127.0.0.1:" + server.port() + "/v1/objects/v" + number))
                                .build(),
                        BodyHandlers.ofByteArray());
                assertThat(reply.statusCode()).isEqualTo(200);
                assertThat(Arrays.equals(reply.body(), value(number))).isTrue();
            }
            assertThat(page(client, server, "/metrics"))
                    .containsPattern("kv_reads_from_disk_total\\{tenant=\"default\"} [1-9]");
        }
        assertThat(server.loaded()).isGreaterThan(before);
    }

    @Test
    @Tag("slow")
    void givenClientsThatLeaveWhileTheirValuesAreOnTheWay_whenAllHaveLeft_thenNothingIsHeld() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder)) {
            server.fill();
            for (int number = 0; number < VALUES; number++) {
                try (Socket socket = server.connect()) {
                    socket.setSoLinger(true, 0);
                    byte[] request = switch (number % 3) {
                        case 0 -> ascii("GET v" + number + "\r\n");
                        case 1 -> lmRequest(LmTestClient.GET, "v" + number);
                        default -> ascii("GET /v1/objects/v" + number + " HTTP/1.1\r\nHost: localhost\r\n\r\n");
                    };
                    socket.getOutputStream().write(request);
                }
            }
            assertThat(server.server().drain(Duration.ofSeconds(60))).isTrue();
            while (server.server().cache().stats().openTables() > 0) {
                Pause.briefly(); // a value that is on its way ends it
            }
            server.server().cache().validate();
        }
    }

    @Test
    @Tag("nightly")
    void givenValuesOnDisk_whenTakenWithinATransaction_thenEachIsReadInItsTurnAndGone() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder)) {
            server.fill();
        }
        try (DiskTestServer server = new DiskTestServer(folder);
                Socket socket = server.connect()) {
            while (server.server().cache().isRecovering()) {
                Pause.briefly();
            }
            StringBuilder all = new StringBuilder("MULTI\r\n");
            int taken = 60;
            for (int number = 0; number < taken; number++) {
                all.append("GETEX v")
                        .append(number)
                        .append(" EX 1000\r\nGETDEL v")
                        .append(number)
                        .append("\r\n");
            }
            socket.getOutputStream().write(ascii(all + "EXEC\r\nDBSIZE\r\n"));
            byte[] queued = ascii("+OK\r\n" + "+QUEUED\r\n".repeat(2 * taken) + "*" + 2 * taken + "\r\n");
            assertThat(socket.getInputStream().readNBytes(queued.length)).isEqualTo(queued);
            for (int number = 0; number < 2 * taken; number++) {
                byte[] value = value(number / 2);
                byte[] head = ascii("$" + value.length + "\r\n");
                assertThat(socket.getInputStream().readNBytes(head.length)).isEqualTo(head);
                assertThat(Arrays.equals(socket.getInputStream().readNBytes(value.length), value))
                        .as("value %d", number / 2)
                        .isTrue();
                assertThat(socket.getInputStream().readNBytes(2)).isEqualTo(ascii("\r\n"));
            }
            assertThat(socket.getInputStream().readNBytes(4)).isEqualTo(ascii(":0\r\n"));
            assertThat(answers(server, "EXISTS v0 v59 v60\r\n")).containsExactly(":1");
            server.server().cache().validate();
        }
    }

    @Test
    void givenValuesOnDisk_whenRestarted_thenTheyAreServedAndWhatIsKnownOfThemIsRight() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder)) {
            assertThat(answers(
                            server, "SET timed abc EXAT 4000000000\r\nSET brief abc PX 1\r\nMSET a 1 b 22\r\nSAVE\r\n"))
                    .containsOnly("+OK");
            assertThat(answers(server, "LASTSAVE\r\n")).hasSize(1).doesNotContain(":0");
        }
        try (DiskTestServer server = new DiskTestServer(folder)) {
            while (server.server().cache().isRecovering()) {
                Pause.briefly();
            }
            assertThat(answers(server, "EXPIRETIME timed\r\nSTRLEN b\r\nTYPE a\r\n"))
                    .containsExactly(":4000000000", ":2", "+string");
            assertThat(answers(server, "MGET a b none timed\r\n"))
                    .containsExactly("*4", "$1", "1", "$2", "22", "$-1", "$3", "abc");
            assertThat(answers(server, "GET brief\r\nEXISTS brief\r\n")).containsExactly("$-1", ":0");
            assertThat(answers(server, "DBSIZE\r\n")).containsExactly(":3");
        }
    }

    @Test
    void givenValuesFromBeforeARestart_whenReplacedWithAnEyeOnThem_thenTheyAreSeen() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder)) {
            assertThat(answers(
                            server, "SET timed abc EXAT 4000000000\r\nSET brief abc PX 1\r\nMSET a 1 b 22\r\nSAVE\r\n"))
                    .containsOnly("+OK");
        }
        try (DiskTestServer server = new DiskTestServer(folder)) {
            while (server.server().cache().isRecovering()) {
                Pause.briefly();
            }
            assertThat(answers(server, "SET a 9 GET\r\nGETSET b 8\r\n")).containsExactly("$1", "1", "$2", "22");
            assertThat(answers(server, "SETNX brief new\r\nSETNX a no\r\n")).containsExactly(":1", ":0");
            assertThat(answers(server, "SET timed x KEEPTTL\r\nEXPIRETIME timed\r\n"))
                    .containsExactly("+OK", ":4000000000");
            assertThat(answers(server, "MGET a b brief timed\r\n"))
                    .containsExactly("*4", "$1", "9", "$1", "8", "$3", "new", "$1", "x");
        }
    }

    @Test
    void givenAValueThatIsLargerThanTheDiskTakes_whenSaved_thenTheReasonIsSaid() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder)) {
            String value = "x".repeat(6 << 20);
            assertThat(answers(
                            server,
                            "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$" + value.length() + "\r\n" + value + "\r\nSAVE\r\n"))
                    .containsExactly(
                            "+OK",
                            "-ERR not all is on disk, 6291505 bytes are in memory alone: a disk fails, is full or slow,"
                                    + " or a value is larger than half a percent of it");
        }
    }

    @Test
    void givenATiersFileThatWasRemoved_whenSaved_thenSaveAndReadinessNameIt() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder);
                HttpClient client = HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .build()) {
            assertThat(answers(server, "SET a 1\r\nSAVE\r\n")).containsExactly("+OK", "+OK");
            Path tier;
            try (Stream<Path> files = Files.walk(folder)) {
                tier = files.filter(file -> file.endsWith("tier")).findFirst().orElseThrow();
            }
            Files.delete(tier);
            String problem = "disk " + tier.getParent() + " is read only: " + tier + " was removed";
            assertThat(answers(server, "SAVE\r\n")).singleElement().asString().startsWith("-ERR not saved: " + problem);
            assertThat(answers(server, "SET b 2\r\nSAVE\r\n"))
                    .hasSize(2)
                    .last()
                    .asString()
                    .startsWith("-ERR not all is on disk, ")
                    .contains(problem);
            assertThat(page(client, server, "/health/ready"))
                    .startsWith("ready\n")
                    .contains(problem);

            CliResult reopened = CliRunner.run("disk", "reopen", "0", "--port=" + server.port());

            assertThat(reopened.out()).isEqualTo("0 disk " + tier.getParent() + " is serving\n");
            assertThat(reopened.exitCode()).isZero();
            assertThat(answers(server, "SAVE\r\n")).containsExactly("+OK");
        }
    }

    @Test
    void givenADisk_whenPagesAreRead_thenTheyTellOfIt() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder);
                HttpClient client = HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .build()) {
            while (server.server().cache().isRecovering()) {
                Pause.briefly();
            }
            assertThat(page(client, server, "/health/ready")).isEqualTo("ready\n");
            assertThat(page(client, server, "/metrics")).contains("kv_disk_serving{cache=\"server\",disk=\"0\"} 1.0");
            assertThat(page(client, server, "/v1/stats"))
                    .contains("\"state\":\"SERVING\"", "\"recovering\":false", "\"evictedUnwritten\":0");
        }
    }

    @Test
    void givenAServer_whenItsMetersAreRead_thenEachSaysWhatItCounts() throws Exception {
        try (DiskTestServer server = new DiskTestServer(folder);
                HttpClient client = HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .build()) {
            List<String> lines = page(client, server, "/metrics").lines().toList();

            assertThat(lines)
                    .filteredOn(line -> line.startsWith("# HELP "))
                    .hasSizeGreaterThan(60)
                    .allSatisfy(line -> assertThat(line.split(" ", 4)[3]).isNotBlank());
            assertThat(lines)
                    .anyMatch(line -> line.startsWith("kv_left_to_compute_total{tenant=\"default\"} "))
                    .anyMatch(line -> line.startsWith("kv_blocks_left_to_compute_total{"))
                    .anyMatch(line -> line.startsWith("kv_version{version="))
                    .anyMatch(line -> line.startsWith("process_uptime_seconds "))
                    .anyMatch(line -> line.startsWith("process_start_time_seconds "))
                    .anyMatch(line -> line.startsWith("process_files_open_files "))
                    .anyMatch(line -> line.startsWith("process_cpu_usage "))
                    .anyMatch(line -> line.startsWith("jvm_threads_live_threads "))
                    .anyMatch(line -> line.startsWith("jvm_gc_seconds_total{"));
        }
    }

    private static String page(HttpClient client, DiskTestServer server, String path)
            throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + server.port() + path))
                .build();
        return client.send(request, BodyHandlers.ofString()).body();
    }

    /// Lines of the answer to requests that are sent at once.
    private static List<String> answers(DiskTestServer server, String requests) throws IOException {
        try (Socket socket = server.connect()) {
            socket.getOutputStream().write(ascii(requests + "QUIT\r\n"));
            String all = new String(socket.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            assertThat(all).endsWith("+OK\r\n");
            return all.substring(0, all.length() - 5).lines().toList();
        }
    }

    @Test
    void givenValuesOnDisk_whenPartsAreRead_thenTheyComeWithoutTheRest(@TempDir Path folder) throws Exception {
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            disk.fill();
            for (int number = 0; number < 8; number++) {
                byte[] value = DiskTestServer.value(number);
                for (int from : List.of(0, 65_000, value.length - 100_000)) {
                    HttpResponse<byte[]> part = client.send(client.request("/v1/objects/v" + number)
                            .header("Range", "bytes=" + from + "-" + (from + 99_999)));
                    assertThat(part.statusCode()).isEqualTo(206);
                    assertThat(part.headers().firstValue("content-range"))
                            .hasValue("bytes " + from + "-" + (from + 99_999) + "/" + value.length);
                    assertThat(part.body()).isEqualTo(Arrays.copyOfRange(value, from, from + 100_000));
                }
            }
            try (Jedis redis = new Jedis("127.0.0.1", disk.port())) {
                byte[] value = DiskTestServer.value(3);
                byte[] key = "v3".getBytes(US_ASCII);
                assertThat(redis.getrange(key, 1_000_000, 1_000_999))
                        .isEqualTo(Arrays.copyOfRange(value, 1_000_000, 1_001_000));
                assertThat(redis.getrange(key, -10, -1))
                        .isEqualTo(Arrays.copyOfRange(value, value.length - 10, value.length));
                assertThat(redis.getrange(key, value.length, -1)).isEmpty();
            }
            assertThat(disk.loaded()).isOne(); // an empty range reads all, to be sure that there is a value
            assertThat(disk.server().cache().diskStats().getFirst().partsRead()).isEqualTo(26);
            byte[] first = DiskTestServer.value(0);
            assertThat(client.send(client.request("/v1/objects/v0").header("Range", "bytes=5-"))
                            .body())
                    .isEqualTo(Arrays.copyOfRange(first, 5, first.length));
            assertThat(disk.loaded()).isEqualTo(2);
            assertThat(disk.server().cache().stats().namespaces().getFirst().objectsFound())
                    .isEqualTo(28);
        }
    }
}

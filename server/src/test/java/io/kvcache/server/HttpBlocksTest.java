package io.kvcache.server;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.KvCache;
import io.kvcache.core.NamespaceStats;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.contract.Pause;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.net.NettyTransport.TransportKind;
import io.kvcache.tiers.TieredKvCache;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import java.net.InetAddress;
import java.net.Socket;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import tools.jackson.databind.JsonNode;

@Tag("slow")
final class HttpBlocksTest {

    /// Blocks of 2 x 2 x 2 x 16 x 32 x 2 bytes.
    private static final String SMALL =
            "{\"shape\":{\"layers\":2,\"kvHeads\":2,\"headDim\":32,\"blockTokens\":16,\"dtype\":\"bf16\"}}";

    private static final int SMALL_BYTES = 8192;

    /// Blocks of 1 MiB.
    private static final String LARGE =
            "{\"shape\":{\"layers\":16,\"kvHeads\":8,\"headDim\":128,\"blockTokens\":16,\"dtype\":\"bf16\"}}";

    private static final int LARGE_BYTES = 1 << 20;

    private final TestServer server = TestServer.start(TransportKind.AUTO);
    private final HttpTestClient httpTestClient = new HttpTestClient(server.port());

    @AfterEach
    void stop() {
        httpTestClient.close();
        server.close();
    }

    private static byte[] content(int number, int bytes) {
        byte[] content = new byte[bytes];
        BlockContent.of(0, number).fill(MemorySegment.ofArray(content));
        return content;
    }

    private static String key(int number) {
        return String.format("%064x", number + 1);
    }

    private static String keys(int from, int to) {
        return IntStream.range(from, to)
                .mapToObj(number -> "\"" + key(number) + "\"")
                .collect(Collectors.joining(","));
    }

    private static int put(HttpTestClient to, int number, int bytes) throws Exception {
        String parent = number == 0 ? "" : "?parent=" + key(number - 1);
        return to.put("/v1/blocks/m/" + key(number) + parent, content(number, bytes))
                .statusCode();
    }

    private static String problem(HttpResponse<byte[]> reply, int status) {
        assertThat(reply.statusCode()).isEqualTo(status);
        assertThat(reply.headers().firstValue("content-type")).hasValue("application/problem+json");
        assertThat(HttpTestClient.json(reply).get("status").intValue()).isEqualTo(status);
        return HttpTestClient.json(reply).get("type").stringValue();
    }

    @Test
    void givenANamespace_whenRegistered_thenItIsListedAndMayBeRegisteredAgain() throws Exception {
        String name = "meta-llama/Llama%203";
        HttpResponse<byte[]> created = httpTestClient.put("/v1/namespaces/" + name, SMALL);
        assertThat(created.statusCode()).isEqualTo(201);
        assertThat(HttpTestClient.json(created).get("blockBytes").intValue()).isEqualTo(SMALL_BYTES);
        assertThat(HttpTestClient.json(created).get("digest").stringValue()).hasSize(64);
        assertThat(httpTestClient.put("/v1/namespaces/" + name, SMALL).statusCode())
                .isEqualTo(200);
        assertThat(httpTestClient.put("/v1/namespaces/other", LARGE).statusCode())
                .isEqualTo(201);
        assertThat(HttpTestClient.json(httpTestClient.get("/v1/namespaces"))
                        .get("namespaces")
                        .findValuesAsString("name"))
                .containsExactly("meta-llama/Llama 3", "other");
        assertThat(HttpTestClient.json(httpTestClient.get("/v1/namespaces/" + name))
                        .at("/shape/order")
                        .stringValue())
                .isEqualTo("layer_kv_head_token");
        byte[] block = content(1, SMALL_BYTES);
        assertThat(httpTestClient.put("/v1/blocks/" + name + "/0a", block).statusCode())
                .isEqualTo(201);
        assertThat(httpTestClient.get("/v1/blocks/meta-llama%2FLlama%203/0A").body())
                .isEqualTo(block);
    }

    @Test
    void givenANamespace_whenDeleted_thenItIsForgottenOnceItIsEmpty() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        assertThat(put(httpTestClient, 0, SMALL_BYTES)).isEqualTo(201);
        assertThat(problem(
                        httpTestClient.send(
                                httpTestClient.request("/v1/namespaces/m").DELETE()),
                        409))
                .endsWith("namespace-not-empty");
        httpTestClient.send(httpTestClient.request("/v1/blocks/m/" + key(0)).DELETE());

        assertThat(httpTestClient
                        .send(httpTestClient.request("/v1/namespaces/m").DELETE())
                        .statusCode())
                .isEqualTo(204);

        assertThat(httpTestClient.get("/v1/namespaces/m").statusCode()).isEqualTo(404);
        assertThat(httpTestClient
                        .send(httpTestClient.request("/v1/namespaces/m").DELETE())
                        .statusCode())
                .isEqualTo(404);
        assertThat(httpTestClient.put("/v1/namespaces/m", SMALL).statusCode()).isEqualTo(201);
        assertThat(put(httpTestClient, 0, SMALL_BYTES)).isEqualTo(201);
    }

    @Test
    void givenANameThatIsTaken_whenRegisteredOtherwise_thenBothShapesAreTold() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        HttpResponse<byte[]> other = httpTestClient.put("/v1/namespaces/m", LARGE);
        assertThat(problem(other, 409)).endsWith(":shape-mismatch");
        assertThat(HttpTestClient.json(other).at("/registered/layers").intValue())
                .isEqualTo(2);
        assertThat(HttpTestClient.json(other).at("/asked/layers").intValue()).isEqualTo(16);
        HttpResponse<byte[]> revised =
                httpTestClient.put("/v1/namespaces/m", SMALL.replace("{\"shape", "{\"revision\":\"2\",\"shape"));
        assertThat(problem(revised, 409)).endsWith(":namespace-differs");
        assertThat(HttpTestClient.json(revised).at("/asked/revision").stringValue())
                .isEqualTo("2");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "{} | shape takes an object",
                "[] | the body takes a JSON object",
                "nonsense | the body is not JSON",
                "{ | the body is not JSON: Unexpected end-of-input",
                "{'shape':{'layers':1},'form':1} | there is no member form; there are revision",
                "{'shape':{'layers':1}} | kvHeads takes a whole number; it is missing",
                "{'shape':{'layers':1,'kvHeads':1,'headDim':1,'blockTokens':16,'dtype':'bf17'}} | dtype is `bf17`",
                "{'shape':{'layers':0,'kvHeads':1,'headDim':1,'blockTokens':16,'dtype':'bf16'}} | layers = 0",
                "{'salt':3,'shape':{'layers':1,'kvHeads':1,'headDim':1,'blockTokens':1,'dtype':'int8'}}"
                        + " | salt takes a text",
            })
    void givenAMistake_whenRegistered_thenItIsNamed(String body, String detail) throws Exception {
        HttpResponse<byte[]> reply = httpTestClient.put("/v1/namespaces/m", body.replace('\'', '"'));
        problem(reply, 400);
        assertThat(HttpTestClient.json(reply).get("detail").stringValue())
                .contains(detail.replace('`', '\''))
                .doesNotContain("REDACTED");
    }

    @Test
    void givenKeysThatAreNoChain_whenMatched_thenWhatIsFoundEndsWhereTheChainDoes() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        for (int number = 0; number < 64; number++) {
            assertThat(put(httpTestClient, number, SMALL_BYTES)).isEqualTo(201);
        }
        String foreign = "\"" + key(99) + "\"";
        assertThat(matched(keys(0, 64))).isEqualTo(64);
        assertThat(matched(keys(0, 10) + "," + foreign + "," + keys(11, 64))).isEqualTo(10);
        for (int number = 100; number < 164; number++) {
            assertThat(httpTestClient
                            .put("/v1/blocks/m/" + key(number), content(number, SMALL_BYTES))
                            .statusCode())
                    .isEqualTo(201);
        }
        assertThat(matched(keys(100, 110) + "," + foreign + "," + keys(111, 164)))
                .isEqualTo(1);
    }

    private int matched(String keys) throws Exception {
        HttpResponse<byte[]> match =
                httpTestClient.post("/v1/blocks/match", "{\"namespace\":\"m\",\"keys\":[" + keys + "]}");
        assertThat(match.statusCode()).isEqualTo(200);
        return HttpTestClient.json(match).get("blocks").intValue();
    }

    @Test
    void givenAKeyThatAnotherNamespaceHas_whenPut_thenItIsRefusedForGood() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        TieredKvCache cache = server.server().cache();
        Namespace other = Namespace.of("other", BlockShape.kv(2, 2, 32, 16, Dtype.BF16));
        Namespace mine = cache.stats().namespaces().stream()
                .map(NamespaceStats::namespace)
                .filter(each -> each.model().equals("m"))
                .findFirst()
                .orElseThrow();
        cache.register(other);
        BlockKey taken = EngineKey.of(HexFormat.of().parseHex(key(0))).toBlockKey(mine);
        MemorySegment block = MemorySegment.ofArray(content(0, SMALL_BYTES));
        assertThat(cache.putAll(BlockChain.ofKeys(other, List.of(taken)), 0, List.of(block), KvCache.NO_WAIT)
                        .stored())
                .isEqualTo(1);
        HttpResponse<byte[]> refused = httpTestClient.put("/v1/blocks/m/" + key(0), content(0, SMALL_BYTES));
        assertThat(problem(refused, 409)).endsWith(":foreign-key");
    }

    @Test
    void givenAChain_whenPutBlockByBlock_thenItMatchesAndComesBack() throws Exception {
        httpTestClient.put("/v1/namespaces/m", LARGE);
        for (int number = 0; number < 6; number++) {
            assertThat(put(httpTestClient, number, LARGE_BYTES)).isEqualTo(201);
        }
        assertThat(put(httpTestClient, 3, LARGE_BYTES)).isEqualTo(204);
        HttpResponse<byte[]> match =
                httpTestClient.post("/v1/blocks/match", "{\"namespace\":\"m\",\"keys\":[" + keys(0, 9) + "]}");
        assertThat(match.statusCode()).isEqualTo(200);
        assertThat(HttpTestClient.json(match).get("blocks").intValue()).isEqualTo(6);
        assertThat(HttpTestClient.json(match).get("tokens").intValue()).isEqualTo(96);
        assertThat(HttpTestClient.json(match).get("hostBlocks").intValue()).isEqualTo(6);
        assertThat(HttpTestClient.json(match).get("diskBlocks").intValue()).isZero();
        assertThat(HttpTestClient.json(httpTestClient.post("/v1/blocks/match", "{\"namespace\":\"m\",\"keys\":[]}"))
                        .get("blocks")
                        .intValue())
                .isZero();
        for (int number = 0; number < 6; number++) {
            assertThat(httpTestClient.get("/v1/blocks/m/" + key(number)).body())
                    .isEqualTo(content(number, LARGE_BYTES));
        }
        assertThat(problem(httpTestClient.get("/v1/blocks/m/" + key(6)), 404)).isEqualTo("about:blank");
    }

    @Test
    void givenABlock_whenAPartOfItIsRead_thenOnlyThatComes() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        put(httpTestClient, 0, SMALL_BYTES);
        HttpResponse<byte[]> layer = httpTestClient.send(
                httpTestClient.request("/v1/blocks/m/" + key(0)).header("Range", "bytes=4096-8191"));
        assertThat(layer.statusCode()).isEqualTo(206);
        assertThat(layer.body()).isEqualTo(Arrays.copyOfRange(content(0, SMALL_BYTES), 4096, 8192));
        HttpResponse<byte[]> head = httpTestClient.send(
                httpTestClient.request("/v1/blocks/m/" + key(0)).HEAD());
        assertThat(head.statusCode()).isEqualTo(200);
        assertThat(head.headers().firstValueAsLong("content-length")).hasValue(SMALL_BYTES);
        assertThat(httpTestClient
                        .send(httpTestClient.request("/v1/blocks/m/" + key(1)).HEAD())
                        .statusCode())
                .isEqualTo(404);
    }

    @ParameterizedTest
    @CsvSource({
        "bytes=0-0, 206",
        "BYTES=0-0, 206",
        "bytes=-1, 206",
        "bytes=0-99999999999999999999, 206",
        "bytes=8192-, 416",
        "bytes=99999999999999999999-, 416",
        "bytes=-0, 416",
        "bytes=+1-5, 200",
        "bytes=--5, 200",
        "bytes=5-4, 200",
        "bytes=abc, 200",
        "bytes=-, 200",
        "items=0-1, 200",
    })
    void givenARange_whenItIsBeyondOrMalformed_thenItIsRefusedOrIgnored(String range, int status) throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        put(httpTestClient, 0, SMALL_BYTES);
        HttpResponse<byte[]> part = httpTestClient.send(
                httpTestClient.request("/v1/blocks/m/" + key(0)).header("Range", range));
        assertThat(part.statusCode()).isEqualTo(status);
    }

    @Test
    void givenARangeWithAValidator_whenAsked_thenAllComesAsNoneMatches() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        put(httpTestClient, 0, SMALL_BYTES);
        HttpResponse<byte[]> whole = httpTestClient.send(httpTestClient
                .request("/v1/blocks/m/" + key(0))
                .header("Range", "bytes=0-9")
                .header("If-Range", "\"etag\""));
        assertThat(whole.statusCode()).isEqualTo(200);
        assertThat(whole.body()).hasSize(SMALL_BYTES);
    }

    @Test
    void givenBodiesThatAreNotOneBlock_whenPut_thenTheyAreRefusedByName() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        HttpResponse<byte[]> part = httpTestClient.put("/v1/blocks/m/" + key(0), new byte[SMALL_BYTES - 1]);
        assertThat(problem(part, 400)).isEqualTo("urn:kvcache:problem:partial-block");
        assertThat(HttpTestClient.json(part).get("detail").stringValue()).contains("takes 8192 bytes", "not 8191");
        assertThat(problem(httpTestClient.put("/v1/blocks/m/" + key(0), new byte[SMALL_BYTES + 1]), 413))
                .endsWith(":more-than-a-block");
        assertThat(problem(
                        httpTestClient.send(httpTestClient
                                .request("/v1/blocks/m/" + key(0))
                                .PUT(BodyPublishers.fromPublisher(BodyPublishers.ofString("x")))),
                        411))
                .isEqualTo("about:blank");
        assertThat(httpTestClient.get("/v1/blocks/m/" + key(0)).statusCode()).isEqualTo(404);
    }

    @Test
    void givenParents_whenUnknownOrContradictory_thenTheBlockIsRefused() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        byte[] block = content(1, SMALL_BYTES);
        assertThat(problem(httpTestClient.put("/v1/blocks/m/" + key(1) + "?parent=" + key(0), block), 409))
                .endsWith(":unknown-parent");
        assertThat(httpTestClient.put("/v1/blocks/m/" + key(0), block).statusCode())
                .isEqualTo(201);
        HttpResponse<byte[]> both = httpTestClient.send(httpTestClient
                .request("/v1/blocks/m/" + key(1) + "?parent=" + key(0))
                .header("KVCache-Parent", key(5))
                .PUT(BodyPublishers.ofByteArray(block)));
        problem(both, 400);
        assertThat(httpTestClient
                        .send(httpTestClient
                                .request("/v1/blocks/m/" + key(1))
                                .header("KVCache-Parent", key(0))
                                .PUT(BodyPublishers.ofByteArray(block)))
                        .statusCode())
                .isEqualTo(201);
    }

    @Test
    void givenMistakes_whenMade_thenProblemsAreDescribed() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        assertThat(problem(httpTestClient.get("/v1/blocks/n/" + key(0)), 404)).endsWith(":unknown-namespace");
        assertThat(problem(httpTestClient.get("/v1/namespaces/n"), 404)).endsWith(":unknown-namespace");
        assertThat(httpTestClient.post("/v1/blocks/match", "{}").body())
                .asString(US_ASCII)
                .contains("\"status\":400", "namespace is missing");
        assertThat(problem(httpTestClient.post("/v1/blocks/match", "{\"namespace\":\"n\",\"keys\":[]}"), 404))
                .endsWith(":unknown-namespace");
        problem(httpTestClient.get("/v1/blocks/m/abc"), 400);
        problem(httpTestClient.get("/v1/blocks/m/xy"), 400);
        problem(httpTestClient.get("/v1/blocks/m/"), 400);
        problem(httpTestClient.get("/v1/blocks/%ff/00"), 400);
        problem(httpTestClient.post("/v1/blocks/match", "{\"namespace\":\"m\",\"keys\":[3]}"), 400);
        problem(httpTestClient.post("/v1/blocks/match", "{\"namespace\":\"m\"}"), 400);
        assertThat(problem(httpTestClient.get("/v1/blocks/match"), 405)).isEqualTo("about:blank");
        assertThat(problem(httpTestClient.post("/v1/blocks/m/" + key(0), ""), 405))
                .isEqualTo("about:blank");
        assertThat(HttpTestClient.json(httpTestClient.get("/v1/nothing"))
                        .get("detail")
                        .stringValue())
                .contains("/v1/blocks/{namespace}/{key}", "/v1/namespaces");
    }

    @ParameterizedTest
    @CsvSource({
        "2x2x2x16x32 bf16, 200",
        "2x2x2x16x32 bf16 layer_kv_head_token, 200",
        "2x2x2x16x32 bf16 layer_kv_token_head, 409",
        "2x2x2x16x32 f16, 409",
        "2x2x2x32x16 bf16, 409",
        "2x2x2x16 bf16, 400",
        "0x2x2x16x32 bf16, 400"
    })
    void givenAShape_whenNamedByAClient_thenItIsCompared(String shape, int status) throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        put(httpTestClient, 0, SMALL_BYTES);
        HttpResponse<byte[]> reply = httpTestClient.send(
                httpTestClient.request("/v1/blocks/m/" + key(0)).header("KVCache-Shape", shape));
        assertThat(reply.statusCode()).isEqualTo(status);
        if (status == 409) {
            assertThat(HttpTestClient.json(reply).at("/registered/headDim").intValue())
                    .isEqualTo(32);
            assertThat(HttpTestClient.json(reply).has("asked")).isTrue();
        }
    }

    @Test
    void givenAChain_whenABlockIsDeleted_thenItAndAllBelowAreGone() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        for (int number = 0; number < 10; number++) {
            assertThat(put(httpTestClient, number, SMALL_BYTES)).isEqualTo(201);
        }
        HttpResponse<byte[]> deleted = httpTestClient.send(
                httpTestClient.request("/v1/blocks/m/" + key(6)).DELETE());
        assertThat(deleted.statusCode()).isEqualTo(200);
        assertThat(HttpTestClient.json(deleted).get("deleted").intValue()).isEqualTo(4);
        HttpResponse<byte[]> match =
                httpTestClient.post("/v1/blocks/match", "{\"namespace\":\"m\",\"keys\":[" + keys(0, 10) + "]}");
        assertThat(HttpTestClient.json(match).get("blocks").intValue()).isEqualTo(6);
        problem(
                httpTestClient.send(
                        httpTestClient.request("/v1/blocks/m/" + key(6)).DELETE()),
                404);
        problem(httpTestClient.send(httpTestClient.request("/v1/blocks/m/xy").DELETE()), 400);
        assertThat(put(httpTestClient, 6, SMALL_BYTES)).isEqualTo(201);
        assertThat(httpTestClient.get("/v1/blocks/m/" + key(6)).body()).isEqualTo(content(6, SMALL_BYTES));
    }

    @Test
    void givenABlockOnDisk_whenDeleted_thenItDoesNotComeBackWithARestart(@TempDir Path folder) throws Exception {
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", SMALL);
            for (int number = 0; number < 4; number++) {
                assertThat(put(client, number, SMALL_BYTES)).isEqualTo(201);
            }
            assertThat(disk.server().cache().flush(Duration.ofSeconds(60))).isTrue();
            client.send(client.request("/v1/blocks/m/" + key(2)).DELETE());
            assertThat(disk.server().cache().flush(Duration.ofSeconds(60))).isTrue();
        }
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", SMALL);
            while (disk.server().cache().isRecovering()) {
                Pause.briefly(); // until the disk has told all
            }
            assertThat(client.get("/v1/blocks/m/" + key(1)).body()).isEqualTo(content(1, SMALL_BYTES));
            assertThat(client.get("/v1/blocks/m/" + key(2)).statusCode()).isEqualTo(404);
        }
    }

    @Test
    void givenBlocksOnDisk_whenPartsAreRead_thenTheyComeWithoutTheRest(@TempDir Path folder) throws Exception {
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", LARGE);
            for (int number = 0; number < 6; number++) {
                assertThat(put(client, number, LARGE_BYTES)).isEqualTo(201);
            }
            assertThat(disk.server().cache().flush(Duration.ofSeconds(60))).isTrue();
        }
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", LARGE);
            while (disk.server().cache().isRecovering()) {
                Pause.briefly();
            }
            for (int number = 0; number < 6; number++) {
                int from = 70_000 + number * 10_000;
                HttpResponse<byte[]> part = client.send(client.request("/v1/blocks/m/" + key(number))
                        .header("Range", "bytes=" + from + "-" + (from + 65_535)));
                assertThat(part.statusCode()).isEqualTo(206);
                assertThat(part.headers().firstValue("content-range"))
                        .hasValue("bytes " + from + "-" + (from + 65_535) + "/" + LARGE_BYTES);
                assertThat(part.body())
                        .isEqualTo(Arrays.copyOfRange(content(number, LARGE_BYTES), from, from + 65_536));
            }
            assertThat(disk.server().cache().diskStats().getFirst().loaded()).isZero();
            HttpResponse<byte[]> beyond =
                    client.send(client.request("/v1/blocks/m/" + key(5)).header("Range", "bytes=" + LARGE_BYTES + "-"));
            assertThat(beyond.statusCode()).isEqualTo(416);
            HttpResponse<byte[]> head = client.send(client.request("/v1/blocks/m/" + key(5))
                    .header("Range", "bytes=0-9")
                    .HEAD());
            assertThat(head.statusCode()).isEqualTo(200);
            assertThat(head.headers().firstValueAsLong("content-length")).hasValue(LARGE_BYTES);
            assertThat(disk.server().cache().diskStats().getFirst().loaded()).isZero();
            requireCounts(client, 6, 8); // what was beyond and the HEAD have read nothing
            HttpResponse<byte[]> most = client.send(
                    client.request("/v1/blocks/m/" + key(0)).header("Range", "bytes=1-" + (LARGE_BYTES - 1)));
            assertThat(most.body()).isEqualTo(Arrays.copyOfRange(content(0, LARGE_BYTES), 1, LARGE_BYTES));
            assertThat(disk.server().cache().diskStats().getFirst().loaded()).isOne();
            requireCounts(client, 7, 9);
        }
    }

    /// All blocks that were asked for came from the disk.
    private static void requireCounts(HttpTestClient client, long blocks, long hits) throws Exception {
        JsonNode stats = HttpTestClient.json(client.get("/v1/stats"));
        JsonNode namespace = stats.get("namespaces")
                .valueStream()
                .filter(each -> each.get("name").stringValue().equals("m"))
                .findFirst()
                .orElseThrow();
        assertThat(namespace.get("blocksAsked").longValue()).isEqualTo(blocks);
        assertThat(namespace.get("blocksFound").longValue()).isEqualTo(blocks);
        assertThat(namespace.get("blocksArrived").longValue()).isEqualTo(blocks);
        assertThat(stats.at("/blockReads/default/hits").longValue()).isEqualTo(hits);
    }

    private Socket begun(int number, int sent) throws IOException {
        Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port());
        socket.setSoTimeout(60_000);
        OutputStream out = socket.getOutputStream();
        out.write(("PUT /v1/blocks/m/" + key(number) + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + SMALL_BYTES
                        + "\r\n\r\n")
                .getBytes(US_ASCII));
        out.write(content(number, SMALL_BYTES), 0, sent);
        return socket;
    }

    private static String status(Socket socket) throws IOException {
        return new String(socket.getInputStream().readNBytes(12), US_ASCII);
    }

    @Test
    void givenABlockThatIsBeingWritten_whenPutAgain_thenTheSecondIsToldSoAndTheFirstCounts() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        try (Socket first = begun(0, 100)) {
            int answer = 0;
            while (answer != 202) { // until the server has seen the first one
                answer = httpTestClient
                        .put("/v1/blocks/m/" + key(0), content(0, SMALL_BYTES))
                        .statusCode();
                assertThat(answer).isIn(201, 202);
                if (answer == 201) {
                    return; // the second one was faster; nothing to see
                }
            }
            assertThat(httpTestClient.get("/v1/blocks/m/" + key(0)).statusCode())
                    .isEqualTo(404);
            first.getOutputStream().write(content(0, SMALL_BYTES), 100, SMALL_BYTES - 100);
            assertThat(status(first)).isEqualTo("HTTP/1.1 201");
            assertThat(httpTestClient.get("/v1/blocks/m/" + key(0)).body()).isEqualTo(content(0, SMALL_BYTES));
        }
    }

    @Test
    void givenAClientThatGoesAwayWithinABody_whenTheBlockIsPutAgain_thenThereIsRoomForIt() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        begun(0, 100).close();
        int answer = 202;
        while (answer == 202) { // until the server has seen that the first one is gone
            answer = httpTestClient
                    .put("/v1/blocks/m/" + key(0), content(0, SMALL_BYTES))
                    .statusCode();
        }
        assertThat(answer).isEqualTo(201);
        assertThat(httpTestClient.get("/v1/blocks/m/" + key(0)).body()).isEqualTo(content(0, SMALL_BYTES));
    }

    @Test
    void givenMoreBlocksThanFit_whenPut_thenOldOnesGiveWayAndNothingIsLeftOpen() throws Exception {
        httpTestClient.put("/v1/namespaces/m", LARGE);
        for (int number = 0; number < 250; number++) {
            assertThat(httpTestClient
                            .put("/v1/blocks/m/" + key(number), content(number, LARGE_BYTES))
                            .statusCode())
                    .isEqualTo(201);
        }
        assertThat(httpTestClient.get("/v1/blocks/m/" + key(0)).statusCode()).isEqualTo(404);
        assertThat(httpTestClient.get("/v1/blocks/m/" + key(249)).body()).isEqualTo(content(249, LARGE_BYTES));
        assertThat(server.server().drain(Duration.ofSeconds(60))).isTrue();
        assertThat(server.server().cache().stats().openTables()).isZero();
        server.server().cache().validate();
    }

    @Test
    void givenBlocksOnDisk_whenReadAgain_thenTheyComeBack(@TempDir Path folder) throws Exception {
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", LARGE);
            for (int number = 0; number < 100; number++) {
                assertThat(put(client, number, LARGE_BYTES)).isEqualTo(201);
            }
            assertThat(disk.server().cache().flush(Duration.ofSeconds(60))).isTrue();
            for (int number = 0; number < 150; number++) {
                client.put("/v1/objects/" + number, content(number, LARGE_BYTES));
            }
            HttpResponse<byte[]> match =
                    client.post("/v1/blocks/match", "{\"namespace\":\"m\",\"keys\":[" + keys(0, 100) + "]}");
            assertThat(HttpTestClient.json(match).get("blocks").intValue()).isEqualTo(100);
            assertThat(HttpTestClient.json(match).get("diskBlocks").intValue()).isPositive();
            for (int number = 99; number >= 0; number--) {
                assertThat(client.get("/v1/blocks/m/" + key(number)).body()).isEqualTo(content(number, LARGE_BYTES));
            }
            assertThat(disk.loaded()).isPositive();
        }
    }

    private HttpResponse<byte[]> putAll(HttpTestClient to, String line, byte[]... blocks) throws Exception {
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes((line + "\n").getBytes(US_ASCII));
        List.of(blocks).forEach(body::writeBytes);
        return to.send(to.request("/v1/blocks/put").POST(BodyPublishers.ofByteArray(body.toByteArray())));
    }

    private static String line(String keys) {
        return "{\"namespace\":\"m\",\"keys\":[" + keys + "]}";
    }

    private static byte[][] contents(int from, int to, int bytes) {
        return IntStream.range(from, to)
                .mapToObj(number -> content(number, bytes))
                .toArray(byte[][]::new);
    }

    /// The reply's blocks are the first ones; each byte is compared.
    private static void assertBlocks(HttpResponse<byte[]> reply, byte[]... blocks) {
        assertThat(reply.statusCode()).isEqualTo(200);
        assertThat(reply.headers().firstValueAsLong("kvcache-blocks")).hasValue(blocks.length);
        assertThat(reply.headers().firstValue("accept-ranges")).isEmpty();
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        List.of(blocks).forEach(all::writeBytes);
        assertThat(reply.headers().firstValueAsLong("content-length")).hasValue(all.size());
        assertThat(reply.body()).isEqualTo(all.toByteArray());
    }

    private static void assertStored(HttpResponse<byte[]> reply, int status, int blocks, int stored) {
        assertThat(reply.statusCode()).as(new String(reply.body(), US_ASCII)).isEqualTo(status);
        assertThat(HttpTestClient.json(reply).get("blocks").intValue()).isEqualTo(blocks);
        assertThat(HttpTestClient.json(reply).get("stored").intValue()).isEqualTo(stored);
    }

    @Test
    void givenAChain_whenPutInOneRequest_thenOneRequestReadsIt() throws Exception {
        httpTestClient.put("/v1/namespaces/m", LARGE);
        assertStored(putAll(httpTestClient, line(keys(0, 6)), contents(0, 6, LARGE_BYTES)), 200, 6, 6);
        assertStored(putAll(httpTestClient, line(keys(0, 8)), contents(0, 8, LARGE_BYTES)), 200, 8, 2);
        String below = line(keys(8, 10)).replace("{", "{\"parent\":\"" + key(7) + "\",");
        assertStored(putAll(httpTestClient, below, contents(8, 10, LARGE_BYTES)), 200, 2, 2);
        assertStored(putAll(httpTestClient, line("")), 200, 0, 0);

        assertBlocks(httpTestClient.post("/v1/blocks/get", line(keys(0, 20))), contents(0, 10, LARGE_BYTES));
        assertBlocks(httpTestClient.post("/v1/blocks/get", line(keys(0, 3))), contents(0, 3, LARGE_BYTES));
        assertBlocks(httpTestClient.post("/v1/blocks/get", line(keys(20, 22))));
        assertBlocks(httpTestClient.post("/v1/blocks/get", line("")));
        NamespaceStats stats = server.server().cache().stats().namespaces().stream()
                .filter(each -> each.namespace().model().equals("m"))
                .findFirst()
                .orElseThrow();
        assertThat(stats.blocksRequested()).isEqualTo(20 + 3 + 2);
        assertThat(stats.blocksFound()).isEqualTo(10 + 3);
        assertThat(server.server().cache().stats().openTables()).isZero();
    }

    @Test
    void givenKeysThatAreNoChain_whenReadInOneRequest_thenOnlyTheBlocksThatWereAskedForCome() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        putAll(httpTestClient, line(keys(0, 4)), contents(0, 4, SMALL_BYTES));
        putAll(httpTestClient, line(keys(100, 104)), contents(100, 104, SMALL_BYTES));
        byte[] first = content(0, SMALL_BYTES);

        assertBlocks(read(keys(0, 1), keys(50, 51), keys(2, 3)), first);
        assertBlocks(read(keys(0, 1), keys(50, 51), keys(102, 103)), first);
        assertBlocks(read(keys(0, 1), keys(101, 104)), first);
        assertBlocks(read(keys(0, 1), keys(0, 1)), first);
        assertBlocks(read(keys(1, 4)));
        httpTestClient.send(httpTestClient.request("/v1/blocks/m/" + key(2)).DELETE());
        assertBlocks(read(keys(0, 4)), contents(0, 2, SMALL_BYTES));
    }

    private HttpResponse<byte[]> read(String... keys) throws Exception {
        String all = String.join(",", keys);
        HttpResponse<byte[]> reply = httpTestClient.post("/v1/blocks/get", line(all));
        assertThat(reply.headers().firstValueAsLong("kvcache-blocks")).hasValue(matched(all));
        return reply;
    }

    @Test
    void givenMoreThanOneRequestMoves_whenAsked_thenTheRangeIsNamed() throws Exception {
        httpTestClient.put("/v1/namespaces/m", LARGE);
        String range = "257 keys; for blocks of 1048576 bytes it takes 0 to 256, which have up to 268435456 bytes";
        assertThat(detail(httpTestClient.post("/v1/blocks/get", line(keys(0, 257))), 400))
                .contains(range);
        assertThat(detail(putAll(httpTestClient, line(keys(0, 257))), 400)).contains(range);
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            socket.setSoTimeout(60_000);
            socket.getOutputStream()
                    .write("POST /v1/blocks/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: 300000000\r\n\r\n"
                            .getBytes(US_ASCII));
            assertThat(status(socket)).isEqualTo("HTTP/1.1 413");
        }
    }

    private static String detail(HttpResponse<byte[]> reply, int status) {
        problem(reply, status);
        return HttpTestClient.json(reply).get("detail").stringValue();
    }

    @Test
    void givenMistakesInAPutOfSeveral_whenMade_thenNothingIsStoredAndTheyAreNamed() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        byte[] block = content(0, SMALL_BYTES);
        assertThat(detail(putAll(httpTestClient, line(keys(0, 2)), block), 400))
                .contains("2 blocks of 8192 bytes take 16384 bytes behind the first line, not 8192");
        assertThat(detail(putAll(httpTestClient, line(keys(0, 1)), block, new byte[1]), 400))
                .contains("1 blocks of 8192 bytes take 8192 bytes behind the first line, not 8193");
        assertThat(detail(putAll(httpTestClient, "[]", block), 400)).contains("first line takes a JSON object");
        assertThat(detail(putAll(httpTestClient, "{", block), 400)).contains("first line is not JSON");
        assertThat(detail(httpTestClient.post("/v1/blocks/put", line(keys(0, 1))), 400))
                .contains("ends with a line feed");
        assertThat(detail(putAll(httpTestClient, line(keys(0, 1) + ",\"xy\""), block, block), 400))
                .startsWith("keys[1] is 'xy', of 2 characters; it takes 2 to 8192 hexadecimal digits");
        assertThat(detail(putAll(httpTestClient, line(keys(0, 1)).replace("{", "{\"parent\":\"\","), block), 400))
                .startsWith("parent is '', of 0 characters; it takes 2 to 8192");
        assertThat(detail(httpTestClient.put("/v1/blocks/m/00?parent=0", block), 400))
                .startsWith("parent is '0', of 1 characters");
        assertThat(detail(httpTestClient.put("/v1/blocks/m/0g", block), 400)).startsWith("key is '0g'");
        assertThat(detail(putAll(httpTestClient, "{\"keys\":[]}"), 400)).contains("namespace is missing");
        assertThat(problem(putAll(httpTestClient, line(keys(0, 1)).replace("\"m\"", "\"n\""), block), 404))
                .endsWith(":unknown-namespace");
        assertThat(problem(httpTestClient.post("/v1/blocks/get", "{\"namespace\":\"n\",\"keys\":[]}"), 404))
                .endsWith(":unknown-namespace");
        assertThat(detail(httpTestClient.post("/v1/blocks/get", line("").replace("{", "{\"parent\":\"00\",")), 400))
                .contains("parent is for put");
        problem(httpTestClient.get("/v1/blocks/get"), 405);
        problem(
                httpTestClient.send(httpTestClient
                        .request("/v1/blocks/put")
                        .POST(BodyPublishers.fromPublisher(BodyPublishers.ofString("x")))),
                411);
        assertThat(problem(
                        httpTestClient.send(httpTestClient
                                .request("/v1/blocks/put")
                                .header("KVCache-Shape", "1x1x1x1x1 bf16")
                                .POST(BodyPublishers.ofString(line("") + "\n"))),
                        409))
                .endsWith(":shape-mismatch");
        assertThat(matched(keys(0, 2))).isZero();
    }

    @Test
    void givenABlockThatCannotBeStored_whenPutAmongSeveral_thenThoseBeforeItAreAndItsReasonIsTold() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        TieredKvCache cache = server.server().cache();
        Namespace mine = cache.stats().namespaces().stream()
                .map(NamespaceStats::namespace)
                .filter(each -> each.model().equals("m"))
                .findFirst()
                .orElseThrow();
        Namespace other = Namespace.of("other", BlockShape.kv(2, 2, 32, 16, Dtype.BF16));
        cache.register(other);
        BlockKey taken = EngineKey.of(HexFormat.of().parseHex(key(2))).toBlockKey(mine);
        cache.putAll(
                BlockChain.ofKeys(other, List.of(taken)),
                0,
                List.of(MemorySegment.ofArray(content(0, SMALL_BYTES))),
                KvCache.NO_WAIT);

        HttpResponse<byte[]> reply = putAll(httpTestClient, line(keys(0, 4)), contents(0, 4, SMALL_BYTES));
        assertThat(problem(reply, 409)).endsWith(":foreign-key");
        assertStored(reply, 409, 2, 2);
        assertBlocks(read(keys(0, 4)), contents(0, 2, SMALL_BYTES));

        String orphan = line(keys(10, 12)).replace("{", "{\"parent\":\"" + key(9) + "\",");
        HttpResponse<byte[]> parentless = putAll(httpTestClient, orphan, contents(10, 12, SMALL_BYTES));
        assertThat(problem(parentless, 409)).endsWith(":unknown-parent");
        assertStored(parentless, 409, 0, 0);
    }

    @Test
    void givenPresentBlocksThatAreNoChain_whenPut_thenTheFirstThatIsElsewhereEndsIt() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        putAll(httpTestClient, line(keys(1, 3)), contents(1, 3, SMALL_BYTES));
        byte[] root = content(100, SMALL_BYTES);
        putAll(httpTestClient, line(keys(100, 101)), root);

        assertOtherParent(line(keys(1, 2) + "," + keys(100, 101)), 2, 1, 0);
        assertOtherParent(line(keys(2, 3) + "," + keys(1, 2)), 2, 0, 0);
        assertOtherParent(line(keys(50, 51) + "," + keys(50, 51)), 2, 1, 1);
        String below = line(keys(2, 3)).replace("{", "{\"parent\":\"" + key(100) + "\",");
        assertOtherParent(below, 1, 0, 0);
        String path = "/v1/blocks/m/" + key(100);
        HttpResponse<byte[]> single = httpTestClient.put(path + "?parent=" + key(1), root);
        assertThat(problem(single, 409)).endsWith(":other-parent");
        assertThat(HttpTestClient.json(single).get("detail").stringValue())
                .isEqualTo("block " + key(100) + " is stored already, but not as the child of " + key(1));
        assertThat(detail(httpTestClient.put("/v1/blocks/m/" + key(2), root), 409))
                .endsWith("but not as the first of a chain; name its parent");
        assertThat(httpTestClient.put(path, root).statusCode()).isEqualTo(204);
        assertStored(putAll(httpTestClient, line(keys(1, 3)), contents(1, 3, SMALL_BYTES)), 200, 2, 0);
        server.server().cache().validate();
    }

    private void assertOtherParent(String line, int sent, int blocks, int stored) throws Exception {
        HttpResponse<byte[]> reply = putAll(httpTestClient, line, contents(0, sent, SMALL_BYTES));
        assertThat(problem(reply, 409)).endsWith(":other-parent");
        assertStored(reply, 409, blocks, stored);
    }

    @Test
    void givenAClientThatGoesAwayAmongSeveralBlocks_whenOthersPut_thenTheCompleteOnesStay() throws Exception {
        httpTestClient.put("/v1/namespaces/m", SMALL);
        byte[] line = (line(keys(0, 3)) + "\n").getBytes(US_ASCII);
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), server.port())) {
            OutputStream out = socket.getOutputStream();
            out.write(("POST /v1/blocks/put HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                            + (line.length + 3 * SMALL_BYTES) + "\r\n\r\n")
                    .getBytes(US_ASCII));
            out.write(line);
            out.write(content(0, SMALL_BYTES));
            out.write(content(1, SMALL_BYTES), 0, 100);
            out.flush();
            while (matched(keys(0, 3)) == 0) {
                Thread.onSpinWait();
            }
        }
        HttpResponse<byte[]> reply;
        do { // until the server has seen that the first client is gone
            reply = putAll(httpTestClient, line(keys(0, 3)), contents(0, 3, SMALL_BYTES));
        } while (reply.statusCode() == 202 || reply.statusCode() == 409);
        assertThat(reply.statusCode()).isEqualTo(200);
        assertThat(HttpTestClient.json(reply).get("blocks").intValue()).isEqualTo(3);
        assertBlocks(read(keys(0, 3)), contents(0, 3, SMALL_BYTES));
        assertThat(server.server().drain(Duration.ofSeconds(60))).isTrue();
        server.server().cache().validate();
    }

    @Test
    void givenParentsOnDisk_whenMoreArePut_thenTheyCountAsStored(@TempDir Path folder) throws Exception {
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", LARGE);
            assertStored(putBelow(client, 0, 20), 200, 20, 20);
            moveToDisk(disk, client);

            HttpResponse<byte[]> reply = putBelow(client, 20, 22);
            assertThat(reply.statusCode()).isIn(200, 202); // 200 if the blocks on disk were quicker
            assertStored(reply, reply.statusCode(), 2, 2);
            HttpResponse<byte[]> read;
            do { // until the blocks before them have come from disk
                read = client.post("/v1/blocks/get", line(keys(0, 30)));
            } while (read.headers().firstValueAsLong("kvcache-blocks").orElse(0) < 22);
            assertBlocks(read, contents(0, 22, LARGE_BYTES));
        }
    }

    @Test
    void givenABlockOnDisk_whenPutBelowAnotherOne_thenItIsRejectedAndStays(@TempDir Path folder) throws Exception {
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", LARGE);
            assertStored(putBelow(client, 0, 4), 200, 4, 4);
            moveToDisk(disk, client);

            for (int number : List.of(0, 3)) { // the first could be filled by the put, as nothing is above it
                String path = "/v1/blocks/m/" + key(number) + "?parent=" + key(1);
                assertThat(problem(client.put(path, content(9, LARGE_BYTES)), 409))
                        .endsWith(":other-parent");
            }
            assertBlocks(client.post("/v1/blocks/get", line(keys(0, 9))), contents(0, 4, LARGE_BYTES));
            disk.server().cache().validate();
        }
    }

    @Test
    void givenAChainAsLongAsHostMemory_whenTheNextBlockIsPut_thenTheLimitIsNamed(@TempDir Path folder)
            throws Exception {
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", LARGE);
            int length = 0;
            HttpResponse<byte[]> reply = putBelow(client, 0, 20);
            while (reply.statusCode() == 200) {
                length += 20;
                reply = putBelow(client, length, length + 20);
            }
            length += HttpTestClient.json(reply).get("blocks").intValue();
            // Where the disk was quick, the chain's first blocks are on it alone already.
            assertThat(reply.statusCode()).isIn(507, 409);
            assertThat(detail(reply, reply.statusCode())).contains("the chain is as long as host memory");
            moveToDisk(disk, client);

            HttpResponse<byte[]> later = putBelow(client, length, length + 1);
            assertThat(problem(later, 409)).endsWith(":dropped");
            assertThat(detail(later, 409)).contains("on disk", "the chain is as long as host memory");
            disk.server().cache().validate();
        }
    }

    private HttpResponse<byte[]> putBelow(HttpTestClient client, int from, int to) throws Exception {
        String parent = from == 0 ? "{" : "{\"parent\":\"" + key(from - 1) + "\",";
        return putAll(client, line(keys(from, to)).replace("{", parent), contents(from, to, LARGE_BYTES));
    }

    /// Fills host memory with values.
    private static void moveToDisk(DiskTestServer disk, HttpTestClient client) throws Exception {
        assertThat(disk.server().cache().flush(Duration.ofSeconds(60))).isTrue();
        for (int number = 0; number < 200; number++) {
            client.put("/v1/objects/" + number, content(number, LARGE_BYTES));
        }
        assertThat(disk.server().cache().flush(Duration.ofSeconds(60))).isTrue();
    }

    @Test
    void givenBlocksOnDisk_whenReadInOneRequest_thenTheyComeBack(@TempDir Path folder) throws Exception {
        try (DiskTestServer disk = new DiskTestServer(folder);
                HttpTestClient client = new HttpTestClient(disk.port())) {
            client.put("/v1/namespaces/m", LARGE);
            for (int from = 0; from < 100; from += 20) {
                String parent = from == 0 ? "{" : "{\"parent\":\"" + key(from - 1) + "\",";
                String line = line(keys(from, from + 20)).replace("{", parent);
                assertStored(putAll(client, line, contents(from, from + 20, LARGE_BYTES)), 200, 20, 20);
            }
            assertThat(disk.server().cache().flush(Duration.ofSeconds(60))).isTrue();
            for (int number = 0; number < 150; number++) {
                client.put("/v1/objects/" + number, content(number, LARGE_BYTES));
            }
            assertBlocks(client.post("/v1/blocks/get", line(keys(0, 100))), contents(0, 100, LARGE_BYTES));
            assertThat(disk.loaded()).isPositive();
        }
    }
}

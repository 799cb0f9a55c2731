package io.kvcache.planner.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.memory.SlabPool;
import io.kvcache.core.policy.PolicyKind;
import io.kvcache.planner.opaque.LmcacheReplay;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PrefixForest;
import io.kvcache.planner.trace.TraceGenerator;
import io.kvcache.planner.trace.TraceGenerator.Workload;
import io.kvcache.server.CacheServer;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.HostResources;
import io.kvcache.transport.client.RemoteKvCache;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// A server that begins empty serves one client, request by request, and writes down what it was used for.
@Timeout(300)
@Tag("slow")
final class CaptureReplayTest {

    private static final int SLOT_BYTES = 64 << 10;
    private static final int REQUESTS = 400;
    /// Sizes that are replayed: a store takes half of this one's memory at least.
    private static final Set<Double> FACTORS = Set.of(0.5, 1.0, 2.0, 4.0);

    private static final double A_TENTH_OF_A_POINT = 0.001;

    private static final PrefixForest FOREST = new PrefixForest(
            new TraceGenerator(Workload.mixed(), 5).generate("generated:5", REQUESTS), BlockCountingRule.FULL_BLOCKS);

    @TempDir
    private Path folder;

    @ParameterizedTest
    @EnumSource(LmcacheReplay.ChunkProtocol.class)
    void givenObjectsOfLmcache_whenTheCaptureIsReplayed_thenTheLiveHitRatio(LmcacheReplay.ChunkProtocol chunkProtocol)
            throws IOException {
        Path file = folder.resolve("trace.jsonl");
        LmcacheReplay.Settings settings =
                new LmcacheReplay.Settings(PolicyKind.LRU, 2L * SlabPool.MIN_BYTES, SLOT_BYTES, 0);

        double live = new LmcacheReplay(FOREST, settings, file.toString())
                .run(chunkProtocol)
                .blockHitRatio();

        CaptureReplay.Result result = CaptureReplay.run(file, CaptureReplay.hostBytes(file), PolicyKind.LRU);
        assertThat(live).isBetween(0.1, 0.9);
        assertThat(result.liveHitRatio()).isCloseTo(live, within(A_TENTH_OF_A_POINT));
        assertThat(result.replayedHitRatio()).isCloseTo(live, within(A_TENTH_OF_A_POINT));
    }

    @Test
    void givenBlocksOfAnotherJvm_whenTheCaptureIsReplayed_thenTheLiveHitRatioAndThatOfOtherSizes() throws Exception {
        Path file = folder.resolve("trace.jsonl");
        JsonNode stats = serve(file);

        JsonNode space = stats.get("namespaces").get(stats.get("namespaces").size() - 1);
        for (JsonNode each : stats.get("namespaces")) {
            space = each.get("name").stringValue().equals("replay") ? each : space;
        }
        double live = space.get("blocksFound").doubleValue()
                / space.get("blocksAsked").doubleValue();
        CaptureReplay.Result same = CaptureReplay.run(file, CaptureReplay.hostBytes(file), PolicyKind.LRU);
        assertThat(live).isBetween(0.1, 0.9);
        assertThat(same.liveHitRatio()).isCloseTo(live, within(A_TENTH_OF_A_POINT));
        assertThat(same.replayedHitRatio()).isCloseTo(live, within(A_TENTH_OF_A_POINT));
        assertThat(stats.at("/memoryCurve/uses").longValue()).isEqualTo(same.uses());
        assertThat(stats.at("/memoryCurve/dropped").longValue()).isZero();
        for (JsonNode size : stats.at("/memoryCurve/sizes")) {
            if (!FACTORS.contains(size.get("factor").doubleValue())) {
                continue;
            }
            double replayed = CaptureReplay.run(file, size.get("bytes").longValue(), PolicyKind.LRU)
                    .replayedHitRatio();
            assertThat(size.get("lruHitRatio").doubleValue())
                    .as("%s of memory", size.get("factor"))
                    .isCloseTo(replayed, within(0.03));
        }
    }

    /// Serves the whole trace to one client, and answers with the statistics that the server has then.
    private static JsonNode serve(Path file) throws Exception {
        Map<String, ConfigReader.Option> options = Map.of(
                "listen.port", new ConfigReader.Option("port", "0"),
                "transport.listen", new ConfigReader.Option("transport", "127.0.0.1:0"),
                "transport.shared_memory", new ConfigReader.Option("shared", "off"),
                "memory.host_bytes", new ConfigReader.Option("host", Long.toString(2L * SlabPool.MIN_BYTES)),
                "memory.policy", new ConfigReader.Option("policy", "lru"),
                "memory.prefault", new ConfigReader.Option("prefault", "off"),
                "trace.out", new ConfigReader.Option("trace", file.toString()));
        TraceChains chains = new TraceChains(FOREST, SLOT_BYTES);
        try (CacheServer server = CacheServer.start(
                new ConfigReader(HostResources.detect(), Map.of()).read(ConfigReader.Source.NONE, options))) {
            InetSocketAddress address = Objects.requireNonNull(server.remoteAddress());
            try (KvCache cache = RemoteKvCache.builder("127.0.0.1:" + address.getPort())
                    .requestTimeout(Duration.ofSeconds(60))
                    .connect()) {
                cache.register(chains.namespace());
                for (int request = 0; request < FOREST.requestCount(); request++) {
                    serve(cache, chains.chainOf(request));
                }
            }
            URI page = URI.create("http://127.0.0.1:" + server.address().getPort() + "/v1/stats");
            try (HttpClient client = HttpClient.newHttpClient()) {
                String body = client.send(HttpRequest.newBuilder(page).build(), HttpResponse.BodyHandlers.ofString())
                        .body();
                return JsonMapper.builder().build().readTree(body);
            }
        }
    }

    private static void serve(KvCache cache, BlockChain chain) {
        if (chain.length() == 0) {
            return;
        }
        try (BlockTable table = cache.acquire(chain)) {
            for (int i = table.readyBlocks(); i < chain.length(); i++) {
                try (BlockWriter writer = cache.put(chain, i, 0, KvCache.NO_WAIT)) {
                    assertThat(writer.outcome()).isIn(PutOutcome.RESERVED, PutOutcome.NO_ROOM);
                    if (writer.outcome() == PutOutcome.RESERVED) {
                        writer.seal();
                    }
                }
            }
        }
    }

    @Test
    void givenWhatIsNoCapture_whenReplayed_thenTheErrorNamesFileAndLine() throws IOException {
        Path other = Files.writeString(folder.resolve("other.jsonl"), "{\"timestamp\":0}\n");
        assertThatThrownBy(() -> CaptureReplay.run(other, SlabPool.MIN_BYTES, PolicyKind.LRU))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(other + ":1")
                .hasMessageContaining("must be");
        Path broken = Files.writeString(
                folder.resolve("broken.jsonl"), "{\"kvcache_trace\":1}\n{\"at\":1,\"op\":\"get\",\"ns\":7}\n");
        assertThatThrownBy(() -> CaptureReplay.run(broken, SlabPool.MIN_BYTES, PolicyKind.LRU))
                .isInstanceOf(IOException.class)
                .hasMessageContaining(broken + ":2")
                .hasMessageContaining("ns is 7");
    }
}

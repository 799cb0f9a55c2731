package io.kvcache.bench.server;

import io.kvcache.bench.server.LoadGenerator.BenchClient;
import io.kvcache.bench.server.PairedSamples.MetricSpec;
import io.kvcache.bench.server.ServerBenchmark.BenchmarkOptions;
import io.kvcache.bench.suite.BenchmarkSuite.BenchResult;
import io.kvcache.bench.suite.Threshold;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// Small requests, sixteen at once over each of two connections, beside redis-server.
final class PipelineBenchmark implements ServerBenchmark {

    private static final int KEYS = 10_000;
    private static final int CONNECTIONS = 2;
    private static final int VALUE_BYTES = 64;
    private static final long HOST_BYTES = 1L << 30;
    private static final Threshold EXISTS = new Threshold.RatioAtLeast(0.7);

    @Override
    public String name() {
        return "pipeline";
    }

    @Override
    public String title() {
        return "small requests, sixteen at once, beside redis-server";
    }

    @Override
    public List<BenchResult> run(BenchmarkOptions benchmarkOptions) throws IOException, InterruptedException {
        try (ServerProcess redis = ServerProcess.startRedis(HOST_BYTES);
                ServerProcess ours = ServerProcess.startCurrent(HOST_BYTES)) {
            fill(redis);
            fill(ours);
            ServerComparison serverComparison = new ServerComparison(ours, redis, benchmarkOptions);
            List<BenchResult> answers = new ArrayList<>();
            for (PipelinedClient.SmallRequest request : PipelinedClient.SmallRequest.values()) {
                String name = request.name().toLowerCase(Locale.ROOT);
                PairedSamples rate = serverComparison.compareLoads(
                        "pipelined " + request,
                        load(request, ours),
                        load(request, redis),
                        result -> result.perSecond() * PipelinedClient.DEPTH / 1e3);
                answers.add(rate.toResult(
                        new MetricSpec("pipe-" + name, "How many pipelined " + request + " a second?", "thousand"),
                        redis.name(),
                        request == PipelinedClient.SmallRequest.EXISTS ? EXISTS : new Threshold.NoThreshold()));
            }
            return answers;
        }
    }

    private static LoadGenerator load(PipelinedClient.SmallRequest request, ServerProcess server) {
        return new LoadGenerator(port -> new PipelinedClient(port, request, KEYS), KEYS, CONNECTIONS, server.port());
    }

    private static void fill(ServerProcess server) throws IOException {
        try (ValueClient client = new ValueClient(server.port(), VALUE_BYTES, true)) {
            for (int key = 0; key < KEYS; key++) {
                client.roundTrip(key);
            }
        }
    }

    /// One connection that sends sixteen small requests at once and takes their replies.
    static final class PipelinedClient implements BenchClient {

        static final int DEPTH = 16;

        /// Each request asks for another key.
        private static final int STRIDE = 7919;

        /// A small request, with the length of its reply.
        enum SmallRequest {
            EXISTS(":1\r\n".length()),
            GET("$64\r\n".length() + VALUE_BYTES + 2),
            SET("+OK\r\n".length());

            private static final String VALUE = "v".repeat(VALUE_BYTES);

            private final int replyBytes;

            SmallRequest(int replyBytes) {
                this.replyBytes = replyBytes;
            }

            private String command(String key) {
                return this == SET ? RespConnection.command(name(), key, VALUE) : RespConnection.command(name(), key);
            }
        }

        private final RespConnection connection;
        private final SmallRequest request;
        private final ByteBuffer[] batches;

        /// @param keys asked for, from 0 on; all of them exist, with values of 64 bytes
        PipelinedClient(int port, SmallRequest request, int keys) throws IOException {
            connection = new RespConnection(port, DEPTH * request.replyBytes);
            this.request = request;
            batches = new ByteBuffer[keys / DEPTH];
            for (int i = 0; i < batches.length; i++) {
                batches[i] = batch(i, keys);
            }
        }

        private ByteBuffer batch(int number, int keys) {
            StringBuilder text = new StringBuilder();
            for (int i = 0; i < DEPTH; i++) {
                int key = Math.floorMod((number * DEPTH + i) * STRIDE, keys);
                text.append(request.command(ValueClient.keyName(key)));
            }
            byte[] bytes = text.toString().getBytes(StandardCharsets.US_ASCII);
            return ByteBuffer.allocateDirect(bytes.length).put(bytes).flip();
        }

        @Override
        public void roundTrip(int key) throws IOException {
            connection.send(batches[key % batches.length].rewind());
            connection.skip((long) DEPTH * request.replyBytes);
        }

        @Override
        public void close() throws IOException {
            connection.close();
        }
    }
}

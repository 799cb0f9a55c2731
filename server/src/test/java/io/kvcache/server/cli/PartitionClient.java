package io.kvcache.server.cli;

import io.kvcache.core.BlockTable;
import io.kvcache.core.KvCache;
import io.kvcache.core.check.BlockContent;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.client.ClientConfig;
import io.kvcache.server.client.RespClient;
import io.kvcache.transport.client.RemoteKvCache;
import io.kvcache.transport.peer.ClusteredKvCache;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.random.RandomGenerator;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/// A client at one side of a cut, in a process of its own: a loop that reads and puts blocks, and one that sets and
/// gets values that change, through one server.
///
/// Answers lines of input: `sums` by a [Sums], `pause` by the value of each key that was acknowledged last, `read` by
/// those that are found now, `go`. Ends with its input.
final class PartitionClient {

    private static final Namespace SPACE = Namespace.of("partition", BlockShape.kv(1, 1, 128, 16, Dtype.BF16));
    private static final int CHAINS = 30;
    private static final int BLOCKS = 300; // of 16 tokens: three groups
    private static final int KEYS = 60;
    private static final Duration PAUSE = Duration.ofMillis(5);
    private static final Duration PATIENCE = Duration.ofSeconds(5);

    private final String side;
    private final ClusteredKvCache cache;
    private final RespClient values;
    private final RandomGenerator random;
    private final Map<String, Acknowledged> acknowledged = new TreeMap<>();
    private final AtomicReference<@Nullable String> firstError = new AtomicReference<>();
    private volatile Sums sums = new Sums(0, 0, 0, 0, 0, 0);
    private boolean paused;

    /// What has happened so far.
    ///
    /// @param asked blocks that were looked for
    /// @param found of these
    /// @param sets of values that were acknowledged
    /// @param retried sets that were told to be tried again
    /// @param errors requests that failed otherwise, or for longer than five seconds
    /// @param wrong blocks with other bytes than were put
    record Sums(long asked, long found, long sets, long retried, long errors, long wrong) {

        Sums plus(long ofAsked, long ofFound, long ofSets, long ofRetried, long ofErrors, long ofWrong) {
            return new Sums(
                    asked + ofAsked,
                    found + ofFound,
                    sets + ofSets,
                    retried + ofRetried,
                    errors + ofErrors,
                    wrong + ofWrong);
        }

        static Sums parse(String line) {
            long[] numbers = List.of(line.split(" ", -1)).stream()
                    .mapToLong(Long::parseLong)
                    .toArray();
            return new Sums(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]);
        }

        String toLine() {
            return String.format(Locale.ROOT, "%d %d %d %d %d %d", asked, found, sets, retried, errors, wrong);
        }
    }

    /// @param nanos when it was acknowledged, by the clock that all processes share
    record Acknowledged(String value, long nanos) {}

    private PartitionClient(String side, String address, String secret, int port) throws IOException {
        this.side = side;
        random = RandomGenerator.of("L64X128MixRandom");
        cache = ClusteredKvCache.connect(
                List.of(address),
                each -> RemoteKvCache.builder(each).secret(secret).connect());
        cache.register(SPACE);
        values = new RespClient(ClientConfig.open("127.0.0.1", port));
    }

    /// The process: name of its side, address and secret of a transport, port for Redis' protocol.
    public static void main(String[] arguments) throws Exception {
        PartitionClient client =
                new PartitionClient(arguments[0], arguments[1], arguments[2], Integer.parseInt(arguments[3]));
        Thread.ofPlatform().daemon().start(client::loopBlocks);
        Thread.ofPlatform().daemon().start(client::loopValues);
        try (BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                System.out.println(client.answer(line));
            }
        }
    }

    private String answer(String line) throws IOException {
        return switch (line) {
            case "sums" -> sums.toLine();
            case "error" -> String.valueOf(firstError.get());
            case "view" ->
                cache.view().nodes().size() + " " + cache.view().serving().size();
            case "pause" -> pause();
            case "read" -> read();
            case "go" -> go();
            default -> throw new IllegalArgumentException(line);
        };
    }

    private synchronized String pause() {
        paused = true;
        StringBuilder text = new StringBuilder();
        acknowledged.forEach((key, last) -> text.append(key)
                .append('=')
                .append(last.value)
                .append('@')
                .append(last.nanos)
                .append(' '));
        return text.toString().strip();
    }

    private synchronized String go() {
        paused = false;
        return "";
    }

    private synchronized String read() throws IOException {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < KEYS; i++) {
            RespClient.RespReply reply = values.call("GET", "key" + i);
            if (reply.isPresent()) {
                text.append("key").append(i).append('=').append(reply.asText()).append(' ');
            }
        }
        return text.toString().strip();
    }

    private synchronized void add(long asked, long found, long sets, long retried, long errors, long wrong) {
        sums = sums.plus(asked, found, sets, retried, errors, wrong);
    }

    private void loopBlocks() {
        try (Arena arena = Arena.ofShared()) {
            long bytes = SPACE.blockBytes();
            List<MemorySegment> blocks = IntStream.range(0, BLOCKS)
                    .mapToObj(_ -> arena.allocate(bytes))
                    .toList();
            while (true) {
                int seed = random.nextInt(CHAINS);
                BlockChain chain = BlockChain.of(
                        SPACE,
                        IntStream.range(0, 16 * BLOCKS)
                                .map(i -> i + seed * 1_000_000)
                                .toArray());
                try {
                    readAndPut(chain, blocks);
                } catch (RuntimeException failed) {
                    firstError.compareAndSet(null, "blocks: " + failed);
                    add(0, 0, 0, 0, 1, 0);
                }
                sleep();
            }
        }
    }

    private void readAndPut(BlockChain chain, List<MemorySegment> blocks) {
        int ready;
        int wrong = 0;
        try (BlockTable table = cache.acquire(chain, 0, Duration.ofMillis(200))) {
            ready = table.await(BLOCKS, Duration.ofMillis(200));
            for (int index = 0; index < ready; index++) {
                try {
                    BlockContent.of(chain.key(index)).requireEqual(table.segment(index));
                } catch (RuntimeException | AssertionError other) {
                    firstError.compareAndSet(null, "wrong bytes: " + other);
                    wrong++;
                }
            }
        }
        if (ready < BLOCKS) {
            for (int index = ready; index < BLOCKS; index++) {
                BlockContent.of(chain.key(index)).fill(blocks.get(index));
            }
            var _ = cache.putAll(chain, ready, blocks.subList(ready, BLOCKS), KvCache.NO_WAIT);
        }
        add(BLOCKS, ready, 0, 0, 0, wrong);
    }

    private void loopValues() {
        long number = 0;
        while (true) {
            number++;
            setAndGet("key" + random.nextInt(KEYS), side + number);
            sleep();
        }
    }

    private synchronized void setAndGet(String key, String value) {
        if (paused) {
            return;
        }
        long until = System.nanoTime() + PATIENCE.toNanos();
        String problem = "";
        do {
            try {
                values.set(key, value.getBytes(StandardCharsets.US_ASCII));
                acknowledged.put(key, new Acknowledged(value, System.nanoTime()));
                var _ = values.call("GET", key);
                add(0, 0, 1, 0, 0, 0);
                return;
            } catch (IOException failed) {
                problem = String.valueOf(failed.getMessage());
                add(0, 0, 0, 1, 0, 0);
            }
        } while (problem.contains("TRYAGAIN") && System.nanoTime() < until);
        firstError.compareAndSet(null, "values: " + problem);
        add(0, 0, 0, 0, 1, 0);
    }

    private static void sleep() {
        try {
            Thread.sleep(PAUSE);
        } catch (InterruptedException stopped) {
            Thread.currentThread().interrupt();
        }
    }
}

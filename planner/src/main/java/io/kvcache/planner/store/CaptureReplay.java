package io.kvcache.planner.store;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.ObjectView;
import io.kvcache.core.ObjectWriter;
import io.kvcache.core.PutOutcome;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.Namespace;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.tiers.TieredKvCache;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// Replays what `kvcache serve --trace-out` wrote over a store of host memory, which may be of another size and
/// have another policy.
///
/// Clients had use for each value that the server found or that they put. The replay asks for all of these, in
/// their order, and puts those that it misses. With the server's own size, policy and initial content, the hits are
/// the same. It skips look-ups that ended without a value or a put.
public final class CaptureReplay {

    private static final String HEADER_FIELD = "kvcache_trace";

    private final Path file;
    private final TieredKvCache cache;
    private final Map<Namespace, Map<Long, Long>> parentsOf = new HashMap<>();
    private final Map<Integer, Namespace> namespaces = new HashMap<>();
    private final Map<Integer, JsonNode> definitions = new HashMap<>();
    private long uses;
    private long live;
    private long replayed;

    private CaptureReplay(Path file, TieredKvCache cache) {
        this.file = file;
        this.cache = cache;
    }

    /// The hits of a replay.
    ///
    /// @param uses blocks and objects that the server found or was given
    /// @param liveHits that the server found
    /// @param replayedHits that were found here
    public record Result(long uses, long liveHits, long replayedHits) {

        /// Share of the uses that the server found.
        public double liveHitRatio() {
            return uses == 0 ? 0 : (double) liveHits / uses;
        }

        /// Share of the uses that were found here.
        public double replayedHitRatio() {
            return uses == 0 ? 0 : (double) replayedHits / uses;
        }
    }

    /// Returns the bytes of host memory that the server had, from the first line.
    ///
    /// @throws IOException when the file is not a capture
    public static long hostBytes(Path file) throws IOException {
        try (BufferedReader lines = Files.newBufferedReader(file)) {
            return first(file, lines.readLine()).get("host_bytes").longValue(0);
        }
    }

    /// Replays a whole file.
    ///
    /// @param hostBytes as the server's `memory.host_bytes`
    /// @throws IOException that names file and line when the file is not a capture, or a line is malformed
    public static Result run(Path file, long hostBytes, EvictionPolicyFactory policy) throws IOException {
        try (TieredKvCache cache = TieredKvCache.builder()
                        .hostBytes(hostBytes)
                        .policy(policy)
                        .build();
                BufferedReader lines = Files.newBufferedReader(file)) {
            CaptureReplay replay = new CaptureReplay(file, cache);
            first(file, lines.readLine());
            int number = 2;
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                replay.line(line, number++);
            }
            return new Result(replay.uses, replay.live, replay.replayed);
        }
    }

    private static JsonNode first(Path file, @Nullable String line) throws IOException {
        JsonNode first = line == null ? null : parse(file, line, 1);
        if (first == null || first.path(HEADER_FIELD).intValue(0) != 1) {
            throw new IOException(
                    file + ":1 is not the first line of a capture: must be {\"" + HEADER_FIELD + "\":1, ...}");
        }
        return first;
    }

    private static JsonNode parse(Path file, String line, int number) throws IOException {
        try {
            return JsonMapper.builder().build().readTree(line);
        } catch (JacksonException broken) {
            throw new IOException(file + ":" + number + " is not JSON: " + broken.getOriginalMessage(), broken);
        }
    }

    private void line(String text, int number) throws IOException {
        JsonNode line = parse(file, text, number);
        if (line.has("end")) {
            return;
        }
        try {
            int space = line.required("ns").intValue();
            if (line.has("op")) {
                use(line, space);
            } else {
                definitions.put(space, line);
            }
        } catch (JacksonException | IllegalArgumentException broken) {
            throw new IOException(file + ":" + number + " cannot be replayed: " + broken.getMessage(), broken);
        }
    }

    private void use(JsonNode line, int space) {
        String verb = line.get("op").stringValue("");
        boolean blocks = isOfBlocks(space);
        switch (verb) {
            case "chain" -> chain(line, namespace(space, line));
            case "put" -> {
                if (blocks) {
                    block(line, namespace(space, line), true);
                } else {
                    object(line, namespace(space, line), true);
                }
            }
            case "get" -> {
                if (line.get("found").intValue() == 1) {
                    if (blocks) {
                        block(line, namespace(space, line), false);
                    } else {
                        object(line, namespace(space, line), false);
                    }
                }
            }
            case "look" -> {}
            default -> throw new IllegalArgumentException("op is '" + verb + "', must be: chain, get, look, put");
        }
    }

    private boolean isOfBlocks(int space) {
        JsonNode about = definitions.get(space);
        if (about == null) {
            throw new IllegalArgumentException("ns is " + space + ", of which no line tells before");
        }
        return about.get("blocks").booleanValue();
    }

    private Namespace namespace(int number, JsonNode line) {
        return namespaces.computeIfAbsent(number, _ -> {
            Namespace namespace = isOfBlocks(number)
                    ? Namespace.of(
                            "capture-" + number,
                            TraceChains.shapeOf(line.get("bytes").intValue()))
                    : Namespace.objects("capture-" + number, "default");
            cache.register(namespace);
            return namespace;
        });
    }

    /// The blocks that the server found: what is missing here is put.
    private void chain(JsonNode line, Namespace namespace) {
        int from = line.get("from").intValue();
        int end = from + line.get("found").intValue();
        List<byte[]> keys = new ArrayList<>();
        for (int i = 0; i < end; i++) {
            keys.add(key(line.get("ids").get(i)));
        }
        BlockChain chain = BlockChain.ofEngineKeys(namespace, keys);
        try (BlockTable table = cache.acquire(chain, from, KvCache.NO_WAIT)) {
            uses += end - from;
            live += end - from;
            replayed += table.readyBlocks();
            int here = table.readyBlocks() == 0 ? cache.match(chain).blocks() : from + table.readyBlocks();
            for (int i = here; i < end; i++) {
                fill(cache.put(chain, i, 0, KvCache.NO_WAIT));
            }
        }
    }

    private void block(JsonNode line, Namespace namespace, boolean put) {
        long id = line.get("ids").get(0).longValue();
        JsonNode after = line.path("after");
        Map<Long, Long> parents = parentsOf.computeIfAbsent(namespace, _ -> new HashMap<>());
        if (after.isNumber()) {
            parents.put(id, after.longValue());
        }
        count(put);
        BlockChain chain = chain(namespace, id, parents);
        int last = chain.length() - 1;
        try (BlockTable table = cache.acquire(chain, last, KvCache.NO_WAIT)) {
            if (table.readyBlocks() > 0) {
                replayed++;
                return;
            }
        }
        fill(cache.put(chain, last, 0, KvCache.NO_WAIT));
    }

    /// The chain that ends with a block.
    ///
    /// @param parents by block, as far as lines have named them
    private static BlockChain chain(Namespace namespace, long block, Map<Long, Long> parents) {
        Deque<byte[]> keys = new ArrayDeque<>();
        for (Long at = block; at != null; at = parents.get(at)) {
            keys.addFirst(key(at));
        }
        return BlockChain.ofEngineKeys(namespace, List.copyOf(keys));
    }

    private void object(JsonNode line, Namespace namespace, boolean put) {
        byte[] key = key(line.get("ids").get(0));
        boolean replaces = put && line.get("replaces").booleanValue();
        if (!replaces) {
            count(put);
            try (ObjectView view = cache.getObject(namespace, key)) {
                if (view != null) {
                    replayed++;
                    return;
                }
            }
        }
        JsonNode after = line.path("after");
        long value = Math.max(1, line.get("bytes").longValue() - key.length);
        try (ObjectWriter writer =
                cache.putObject(namespace, key, after.isNumber() ? key(after) : null, value, KvCache.NO_WAIT)) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                writer.seal();
            }
        }
    }

    private void count(boolean put) {
        uses++;
        live += put ? 0 : 1;
    }

    private static void fill(BlockWriter writer) {
        try (writer) {
            if (writer.outcome() == PutOutcome.RESERVED) {
                writer.seal();
            }
        }
    }

    private static byte[] key(JsonNode id) {
        return key(id.longValue());
    }

    private static byte[] key(long id) {
        return ByteBuffer.allocate(Long.BYTES).putLong(id).array();
    }
}

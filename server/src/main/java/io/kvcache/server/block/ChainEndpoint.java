package io.kvcache.server.block;

import io.kvcache.core.BlockTable;
import io.kvcache.core.Match;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.block.BlockEndpoint.HexKey;
import io.kvcache.server.block.NamespaceJson.ShapeHeader;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.HttpResponder.PinnedBytes;
import io.kvcache.server.http.JsonBodyHandler;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.miss.MissLog.BlockLookup;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.tiers.BlockCatalog;
import io.kvcache.tiers.TieredKvCache;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// `/v1/blocks/match`, `get` and `put`: the leading blocks of a list of keys, each the child of the one before it.
/// What is not so ends the prefix, so keys that are no chain are told truly.
final class ChainEndpoint implements HttpEndpoint {

    /// Tells how many blocks a reply has.
    static final String BLOCKS_HEADER = "KVCache-Blocks";

    /// Bytes of blocks in one request: as many as the largest object has.
    static final long MAX_BYTES = 256L << 20;

    private static final String PARENT = "parent";
    private static final String MATCH_PATH = "/v1/blocks/match";
    private static final String GET_PATH = "/v1/blocks/get";
    private static final String PUT_PATH = "/v1/blocks/put";

    private final TieredKvCache cache;
    private final TenantNamespaceRegistry namespaces;
    private final Duration diskTimeout;
    private final BlockQuotaTrackers stocks;
    private final BlockPuts puts;
    private final Function<String, ByteBudget> outgoing;

    /// @param diskTimeout how long blocks may take from disk; zero in a store without disks
    /// @param outgoing the limits on each tenant's bytes on their way out, by tenant name
    ChainEndpoint(
            TieredKvCache cache,
            TenantNamespaceRegistry namespaces,
            Duration diskTimeout,
            BlockQuotaTrackers stocks,
            BlockPuts puts,
            Function<String, ByteBudget> outgoing) {
        this.cache = cache;
        this.namespaces = namespaces;
        this.diskTimeout = diskTimeout;
        this.stocks = stocks;
        this.puts = puts;
        this.outgoing = outgoing;
    }

    /// What a client asks for.
    sealed interface ChainRequest {}

    /// Keys of one namespace.
    ///
    /// @param name of the namespace, as the client wrote it
    /// @param parent of the block before the first, or null
    record NamedBlocks(
            String name,
            Namespace namespace,
            List<byte[]> keys,
            @Nullable EngineKey parent) implements ChainRequest {

        BlockChain chain() {
            return BlockChain.ofEngineKeys(namespace, keys);
        }

        long blockBytes() {
            return NamespaceJson.shapeOf(namespace).bytes();
        }

        /// Limits what one request moves.
        void requireFits() {
            long most = Math.max(1, MAX_BYTES / blockBytes());
            if (keys.size() > most) {
                throw new IllegalArgumentException("keys has " + keys.size() + " keys; for blocks of " + blockBytes()
                        + " bytes it takes 0 to " + most + ", which have up to " + MAX_BYTES + " bytes");
            }
        }
    }

    /// A namespace that is not known, or has another shape.
    record RejectedChain(ProblemDetails problem) implements ChainRequest {}

    @Override
    public List<String> paths() {
        return List.of(MATCH_PATH, GET_PATH, PUT_PATH);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (!paths().contains(path)) {
            return null;
        }
        if (!request.method().name().equals("POST")) {
            return HttpResponder.methodNotAllowed(request, "POST");
        }
        HttpHeaders headers = request.headers();
        return switch (path) {
            case MATCH_PATH -> new JsonBodyHandler((body, out) -> reply(read(headers, body, tenant), out, this::match));
            case GET_PATH -> new JsonBodyHandler((body, out) -> reply(read(headers, body, tenant), out, this::get));
            default ->
                HttpUtil.isContentLengthSet(request)
                        ? new PutBlocksHandler(
                                puts, HttpUtil.getContentLength(request), line -> read(headers, line, tenant))
                        : new ProblemDetails(HttpResponseStatus.LENGTH_REQUIRED, "a put takes a Content-Length")
                                .toHandler();
        };
    }

    private static void reply(ChainRequest asked, HttpResponder out, BiConsumer<NamedBlocks, HttpResponder> answer) {
        switch (asked) {
            case NamedBlocks blocks -> answer.accept(blocks, out);
            case RejectedChain rejected -> out.sendProblem(rejected.problem());
        }
    }

    /// Reads a request's object.
    ///
    /// @throws IllegalArgumentException that says which member is wrong and what it takes
    private ChainRequest read(HttpHeaders headers, JsonNode body, String tenant) {
        JsonBodyHandler.requireKnownMembers(body, List.of("namespace", "keys", PARENT));
        String name = JsonBodyHandler.textMember(body, "namespace", "");
        if (name.isBlank()) {
            throw new IllegalArgumentException("namespace is missing; it takes the name of one that is registered");
        }
        Namespace namespace = namespaces.find(tenant, name);
        if (namespace == null) {
            return new RejectedChain(NamespaceEndpoint.unknownNamespace(name));
        }
        ProblemDetails shape = ShapeHeader.findProblem(headers, namespace);
        if (shape != null) {
            return new RejectedChain(shape);
        }
        EngineKey parent = body.has(PARENT) ? HexKey.parse(PARENT, JsonBodyHandler.textMember(body, PARENT, "")) : null;
        return new NamedBlocks(name, namespace, keys(body), parent);
    }

    private static List<byte[]> keys(JsonNode body) {
        JsonNode keys = body.get("keys");
        if (keys == null || !keys.isArray()) {
            throw new IllegalArgumentException("keys takes a list of the keys of a chain, from the first block on");
        }
        List<byte[]> bytes = new ArrayList<>(keys.size());
        for (JsonNode key : keys) {
            String name = "keys[" + bytes.size() + "]";
            if (!key.isString()) {
                throw new IllegalArgumentException(name + " takes a text");
            }
            bytes.add(HexKey.bytes(name, key.stringValue()));
        }
        return bytes;
    }

    private void match(NamedBlocks asked, HttpResponder out) {
        requireWholeChain(asked);
        BlockChain chain = asked.chain();
        Match match = cache.match(chain);
        int chained = catalog(chain).countLeading(chain, match.blocks());
        int fast = Math.min(match.deviceBlocks() + match.hostBlocks(), chained);
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("namespace", asked.name());
        answer.put("blocks", chained);
        answer.put("tokens", chained * chain.blockTokens());
        answer.put("hostBlocks", fast);
        answer.put("diskBlocks", chained - fast);
        out.sendJson(HttpResponseStatus.OK, answer);
    }

    private static void requireWholeChain(NamedBlocks asked) {
        if (asked.parent() != null) {
            throw new IllegalArgumentException("parent is for put; keys takes the chain from its first block on");
        }
    }

    private BlockCatalog catalog(BlockChain chain) {
        return cache.blocks(chain.namespace());
    }

    /// Replies with the leading blocks, in place, in one table: at once when they are in host memory, once they have
    /// come when they are on disk.
    private void get(NamedBlocks asked, HttpResponder out) {
        requireWholeChain(asked);
        asked.requireFits();
        BlockChain chain = asked.chain();
        int known = cache.match(chain).blocks();
        int chained = catalog(chain).countLeading(chain, known);
        boolean whole = chained == known;
        BlockTable table = cache.acquire(whole ? chain : chain.prefix(chained), 0, diskTimeout);
        boolean logged = whole && table.blocks() < chain.length(); // as a look-up that ended early
        if (table.readyBlocks() == table.blocks()) {
            sendLeading(chain, asked.blockBytes(), table, logged, out);
            return;
        }
        // As in BlockEndpoint: the store completes this on its own thread.
        table.onReady(table.endBlock(), Runnable::run)
                .whenComplete((_, _) ->
                        out.sendLater(() -> sendLeading(chain, asked.blockBytes(), table, logged, out), table::close));
    }

    /// @param logged whether the log has the look-up already
    private void sendLeading(BlockChain chain, long blockBytes, BlockTable table, boolean logged, HttpResponder out) {
        String tenant = chain.namespace().tenant();
        BlockReadStats.TenantCounters counters = stocks.readStats().forTenant(tenant);
        ByteBudget leaving = outgoing.apply(tenant);
        int blocks = catalog(chain).countLeading(chain, table);
        long bytes = blocks * blockBytes;
        if (!leaving.tryAcquire(bytes)) {
            table.close();
            counters.recordThrottled(missAt(chain, blocks));
            out.sendProblem(ProblemDetails.sendLimitReached(leaving));
            return;
        }
        recordReads(chain, blocks, logged, counters);
        PinnedBytes held = new PinnedBytes(
                bytes,
                (offset, length, each) -> {
                    for (long at = offset; at < offset + length; ) {
                        long from = at % blockBytes;
                        long piece = Math.min(blockBytes - from, offset + length - at);
                        each.visitSegment(table.segment(Math.toIntExact(at / blockBytes)), from, piece);
                        at += piece;
                    }
                },
                () -> {
                    leaving.release(bytes);
                    table.close();
                });
        // How many blocks there are differs by request, so a Range is not read and not offered.
        out.sendPinned(
                held,
                null,
                true,
                headers -> headers.remove(HttpHeaderNames.ACCEPT_RANGES).set(BLOCKS_HEADER, blocks));
    }

    private static BlockLookup missAt(BlockChain chain, int found) {
        BlockKey key = chain.key(Math.min(found, chain.length() - 1));
        return new BlockLookup(chain.namespace(), key, chain.length(), found);
    }

    /// Counts each block once, and as a miss the one that ended the prefix.
    ///
    /// @param logged whether the log has the look-up already
    private void recordReads(BlockChain chain, int blocks, boolean logged, BlockReadStats.TenantCounters counters) {
        BlockQuotaTracker stock = stocks.forTenant(chain.namespace().tenant());
        for (int index = 0; index < blocks; index++) {
            counters.recordHit();
            if (stock != null) {
                stock.recordUse(chain.key(index));
            }
        }
        if (blocks == chain.length()) {
            return;
        }
        boolean late = diskTimeout.isPositive() && catalog(chain).countLeading(chain, blocks + 1) > blocks;
        if (logged) {
            counters.countMiss(chain.key(blocks), late);
        } else if (late) {
            counters.recordTimeout(missAt(chain, blocks));
        } else {
            counters.recordMiss(missAt(chain, blocks));
        }
    }
}

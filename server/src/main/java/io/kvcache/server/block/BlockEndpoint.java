package io.kvcache.server.block;

import io.kvcache.core.BlockTable;
import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.block.NamespaceJson.ShapeHeader;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.HttpResponder.PinnedBytes;
import io.kvcache.server.http.JsonBodyHandler;
import io.kvcache.server.http.PercentDecoder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.tiers.TieredKvCache;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// `/v1/blocks`: the blocks of namespaces, one by one, and how much of a chain is here.
public final class BlockEndpoint implements HttpEndpoint {

    /// Names the block before a block that is put; a query `parent` does the same.
    static final String PARENT_HEADER = "KVCache-Parent";

    private static final String BLOCKS_PREFIX = "/v1/blocks/";
    private static final String MATCH_PATH = BLOCKS_PREFIX + "match";

    private final TieredKvCache cache;
    private final TenantNamespaceRegistry namespaces;
    private final Duration diskTimeout;
    private final BlockQuotaTrackers stocks;
    private final TransferBudgets transferBudgets;

    /// The limits on each tenant's bytes in transit, inbound and outbound, by tenant name.
    public record TransferBudgets(Function<String, ByteBudget> incoming, Function<String, ByteBudget> outgoing) {}

    /// @param arrival how long a block may take from disk; zero in a store without disks
    /// @param stocks the blocks of tenants with a quota
    public BlockEndpoint(
            TieredKvCache cache,
            TenantNamespaceRegistry namespaces,
            Duration arrival,
            BlockQuotaTrackers stocks,
            TransferBudgets transferBudgets) {
        this.stocks = stocks;
        this.transferBudgets = transferBudgets;
        this.cache = cache;
        this.namespaces = namespaces;
        this.diskTimeout = arrival;
    }

    @Override
    public List<String> paths() {
        return List.of(MATCH_PATH, BLOCKS_PREFIX + "{namespace}/{key}");
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        if (path.equals(MATCH_PATH)) {
            return request.method().name().equals("POST")
                    ? new JsonBodyHandler((body, out) -> matchBlocks(request, body, tenant, out))
                    : HttpResponder.methodNotAllowed(request, "POST");
        }
        return path.startsWith(BLOCKS_PREFIX)
                ? routeBlock(request, path.substring(BLOCKS_PREFIX.length()), tenant)
                : null;
    }

    /// A name may contain slashes, a key may not.
    private HttpRequestHandler routeBlock(HttpRequest request, String rest, String tenant) {
        int slash = rest.lastIndexOf('/');
        String name = slash < 1 ? null : PercentDecoder.decode(rest.substring(0, slash));
        if (name == null) {
            return new ProblemDetails(
                            HttpResponseStatus.BAD_REQUEST,
                            "a block is " + BLOCKS_PREFIX
                                    + "{namespace}/{key}, the name percent-encoded, the key hexadecimal")
                    .toHandler();
        }
        Namespace namespace = namespaces.find(tenant, name);
        if (namespace == null) {
            return NamespaceEndpoint.unknownNamespace(name).toHandler();
        }
        ProblemDetails shape = ShapeHeader.findProblem(request.headers(), namespace);
        if (shape != null) {
            return shape.toHandler();
        }
        try {
            return readBlock(request, namespace, HexKey.parse(rest.substring(slash + 1)));
        } catch (IllegalArgumentException mistake) {
            return new ProblemDetails(HttpResponseStatus.BAD_REQUEST, String.valueOf(mistake.getMessage())).toHandler();
        }
    }

    private HttpRequestHandler readBlock(HttpRequest request, Namespace namespace, EngineKey key) {
        String range = request.headers().get(HttpHeaderNames.RANGE);
        String tenant = namespace.tenant();
        GetBlockHandler read = new GetBlockHandler(
                cache,
                namespace,
                key,
                diskTimeout,
                transferBudgets.outgoing().apply(tenant),
                stocks.readStats().forTenant(tenant));
        return switch (request.method().name()) {
            case "GET" ->
                (HttpRequestHandler.BodylessHandler) out -> {
                    recordUse(namespace, key);
                    read.respond(out, range, true);
                };
            case "HEAD" -> (HttpRequestHandler.BodylessHandler) out -> read.respond(out, range, false);
            case "PUT" -> put(request, namespace, key);
            case "DELETE" -> (HttpRequestHandler.BodylessHandler) out -> delete(namespace, key, out);
            default -> HttpResponder.methodNotAllowed(request, "GET, HEAD, PUT, DELETE");
        };
    }

    private void recordUse(Namespace namespace, EngineKey key) {
        BlockQuotaTracker stock = stocks.forTenant(namespace.tenant());
        if (stock != null) {
            stock.recordUse(key.toBlockKey(namespace));
        }
    }

    /// Deletes a block and its descendants, which are useless without it.
    private void delete(Namespace namespace, EngineKey key, HttpResponder out) {
        BlockKey wanted = key.toBlockKey(namespace);
        int dropped = cache.blocks(namespace).drop(wanted);
        BlockQuotaTracker stock = stocks.forTenant(namespace.tenant());
        if (stock != null) {
            stock.removeIfGone(wanted);
        }
        if (dropped > 0) {
            out.sendJson(HttpResponseStatus.OK, Map.of("deleted", dropped));
        } else {
            out.sendProblem(new ProblemDetails(HttpResponseStatus.NOT_FOUND, "no such block"));
        }
    }

    private HttpRequestHandler put(HttpRequest request, Namespace namespace, EngineKey key) {
        EngineKey parent = parent(request);
        long bytes = HttpUtil.getContentLength(request, -1L);
        long blockBytes = NamespaceJson.shapeOf(namespace).bytes();
        if (bytes < 0) {
            return new ProblemDetails(HttpResponseStatus.LENGTH_REQUIRED, "a PUT takes a Content-Length").toHandler();
        }
        if (bytes != blockBytes) {
            return PutBlockHandler.lengthProblem(namespace, bytes).toHandler();
        }
        BlockWriter writer = cache.put(namespace, key, parent, KvCache.NO_WAIT);
        return switch (writer.outcome()) {
            case RESERVED -> write(writer, namespace, key, parent);
            case PRESENT, BUSY, FOREIGN, NO_PARENT, NO_ROOM, DECLINED -> {
                writer.close();
                yield PutBlockHandler.handlerFor(writer.outcome());
            }
        };
    }

    /// Room in the store is had; the block has to be within what may be on its way, and a tenant with a quota
    /// takes room in that too, by giving up other blocks or values.
    private HttpRequestHandler write(
            BlockWriter writer, Namespace namespace, EngineKey key, @Nullable EngineKey parent) {
        long bytes = NamespaceJson.shapeOf(namespace).bytes();
        ByteBudget arriving = transferBudgets.incoming().apply(namespace.tenant());
        if (!arriving.tryAcquire(bytes)) {
            writer.close();
            return ProblemDetails.transferLimitReached("limits.in_flight", arriving)
                    .toHandler();
        }
        BlockQuotaTracker stock = stocks.forTenant(namespace.tenant());
        if (stock == null) {
            return new PutBlockHandler(namespace, writer, PutBlockHandler.withoutQuota(() -> arriving.release(bytes)));
        }
        BlockQuotaTracker.BlockReservation blockReservation =
                stock.reserve(parent == null ? null : parent.toBlockKey(namespace), bytes);
        if (blockReservation == null) {
            writer.close();
            arriving.release(bytes);
            return PutBlockHandler.quotaExceeded(namespace);
        }
        BlockKey stored = key.toBlockKey(namespace);
        return new PutBlockHandler(namespace, writer, new PutBlockHandler.QuotaCharge() {
            @Override
            public void commit() {
                blockReservation.commit(cache.blocks(namespace), stored, bytes);
            }

            @Override
            public void close() {
                blockReservation.close();
                arriving.release(bytes);
            }
        });
    }

    /// The block before, by header or by query; null for a first block.
    private static @Nullable EngineKey parent(HttpRequest request) {
        String header = request.headers().get(PARENT_HEADER);
        String query = null;
        if (request.uri().indexOf('?') >= 0) {
            List<String> given =
                    new QueryStringDecoder(request.uri()).parameters().get("parent");
            query = given == null ? null : given.getFirst();
        }
        if (header != null && query != null && !header.equals(query)) {
            throw new IllegalArgumentException(
                    "the parent is " + header + " in the header and " + query + " in the query; it takes one of them");
        }
        String parent = header == null ? query : header;
        return parent == null ? null : HexKey.parse(parent.strip());
    }

    private void matchBlocks(HttpRequest request, JsonNode body, String tenant, HttpResponder out) {
        JsonBodyHandler.requireKnownMembers(body, List.of("namespace", "keys"));
        String name = JsonBodyHandler.textMember(body, "namespace", "");
        if (name.isBlank()) {
            throw new IllegalArgumentException("namespace is missing; it takes the name of one that is registered");
        }
        Namespace namespace = namespaces.find(tenant, name);
        if (namespace == null) {
            out.sendProblem(NamespaceEndpoint.unknownNamespace(name));
            return;
        }
        ProblemDetails shape = ShapeHeader.findProblem(request.headers(), namespace);
        if (shape != null) {
            out.sendProblem(shape);
            return;
        }
        Match match = matchChain(BlockChain.ofEngineKeys(namespace, keys(body)));
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("namespace", name);
        answer.put("blocks", match.blocks());
        answer.put("tokens", match.blocks() * namespace.blockTokens());
        answer.put("hostBlocks", match.deviceBlocks() + match.hostBlocks());
        answer.put("diskBlocks", match.diskBlocks());
        out.sendJson(HttpResponseStatus.OK, answer);
    }

    /// Returns the longest stored prefix of a chain that a client lists. Each key must be a child of the one
    /// before it.
    private Match matchChain(BlockChain chain) {
        Match match = cache.match(chain);
        int chained = cache.blocks(chain.namespace()).countLeading(chain, match.blocks());
        int fast = Math.min(match.deviceBlocks() + match.hostBlocks(), chained);
        return new Match(0, fast, chained - fast);
    }

    private static List<byte[]> keys(JsonNode body) {
        JsonNode keys = body.get("keys");
        if (keys == null || !keys.isArray()) {
            throw new IllegalArgumentException("keys takes a list of the keys of a chain, from the first block on");
        }
        List<byte[]> bytes = new ArrayList<>(keys.size());
        for (JsonNode key : keys) {
            if (!key.isString()) {
                throw new IllegalArgumentException("keys[" + bytes.size() + "] takes a text");
            }
            bytes.add(HexKey.bytes(key.stringValue()));
        }
        return bytes;
    }

    /// GET and HEAD of a block: at once when it is in host memory, once it has come when it is on disk.
    ///
    /// @param outgoing what the tenant may have on its way out
    /// @param tenantCounters of the tenant
    private record GetBlockHandler(
            TieredKvCache cache,
            Namespace namespace,
            EngineKey key,
            Duration diskTimeout,
            ByteBudget outgoing,
            BlockReadStats.TenantCounters tenantCounters) {

        void respond(HttpResponder out, @Nullable String range, boolean withBody) {
            BlockTable table = cache.acquire(namespace, key, diskTimeout);
            if (table.blocks() == 0 || table.readyBlocks() > 0) {
                reply(table, out, range, withBody);
                return;
            }
            // The store completes this on its own thread, where the table can be given back if there is no loop any
            // more.
            table.onReady(table.firstBlock() + 1, Runnable::run)
                    .whenComplete((_, _) -> out.sendLater(() -> reply(table, out, range, withBody), table::close));
        }

        private void reply(BlockTable table, HttpResponder out, @Nullable String range, boolean withBody) {
            if (table.readyBlocks() == 0) {
                table.close();
                out.sendProblem(missProblem(key.toBlockKey(namespace)));
                return;
            }
            MemorySegment block = table.segment(table.firstBlock());
            if (outgoing.tryAcquire(block.byteSize())) {
                tenantCounters.recordHit();
                out.sendPinned(PinnedBytes.of(block, () -> recordSent(table, block.byteSize())), range, withBody);
            } else {
                table.close();
                tenantCounters.recordThrottled();
                out.sendProblem(ProblemDetails.sendLimitReached(outgoing));
            }
        }

        /// A block that the store knows and that could not be had was not brought from disk in time.
        private ProblemDetails missProblem(BlockKey wanted) {
            if (diskTimeout.isPositive() && cache.blocks(namespace).contains(wanted)) {
                tenantCounters.recordTimeout();
                return ProblemDetails.timedOut(HttpResponseStatus.SERVICE_UNAVAILABLE);
            }
            tenantCounters.recordMiss(wanted);
            return new ProblemDetails(HttpResponseStatus.NOT_FOUND, "no such block");
        }

        private void recordSent(BlockTable table, long bytes) {
            outgoing.release(bytes);
            table.close();
        }
    }

    /// An engine's key as clients write it: in hexadecimal, since most keys are digests.
    static final class HexKey {

        private static final int MAX_DIGITS = 2 * 4096;

        private HexKey() {}

        /// The bytes of a key.
        ///
        /// @throws IllegalArgumentException that says what a key takes
        static byte[] bytes(String text) {
            if (text.isEmpty() || text.length() > MAX_DIGITS || text.length() % 2 != 0 || !isHexadecimal(text)) {
                throw new IllegalArgumentException(
                        "a key takes 2 to " + MAX_DIGITS + " hexadecimal digits, two for each byte");
            }
            return HexFormat.of().parseHex(text);
        }

        static EngineKey parse(String text) {
            return EngineKey.of(bytes(text));
        }

        private static boolean isHexadecimal(String text) {
            return text.chars().allMatch(HexFormat::isHexDigit);
        }
    }
}

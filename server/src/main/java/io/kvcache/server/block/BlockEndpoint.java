package io.kvcache.server.block;

import io.kvcache.core.BlockTable;
import io.kvcache.core.DiskBlock;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.block.BlockPuts.PutStart;
import io.kvcache.server.block.NamespaceJson.ShapeHeader;
import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.HttpResponder.PinnedBytes;
import io.kvcache.server.http.HttpResponder.RangeHeader;
import io.kvcache.server.http.PercentDecoder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.miss.MissLog.BlockLookup;
import io.kvcache.server.quota.ByteBudget;
import io.kvcache.server.quota.PartRead;
import io.kvcache.tiers.TieredKvCache;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// `/v1/blocks`: the blocks of namespaces, one by one or [several of a chain][ChainEndpoint].
public final class BlockEndpoint implements HttpEndpoint {

    /// Names the block before a block that is put; a query `parent` does the same.
    static final String PARENT_HEADER = "KVCache-Parent";

    private static final String BLOCKS_PREFIX = "/v1/blocks/";

    private final TieredKvCache cache;
    private final TenantNamespaceRegistry namespaces;
    private final Duration diskTimeout;
    private final BlockQuotaTrackers stocks;
    private final TransferBudgets transferBudgets;
    private final BlockPuts puts;
    private final ChainEndpoint chainEndpoint;

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
        puts = new BlockPuts(cache, stocks, transferBudgets.incoming());
        chainEndpoint = new ChainEndpoint(cache, namespaces, arrival, stocks, puts, transferBudgets.outgoing());
    }

    @Override
    public List<String> paths() {
        return Stream.concat(chainEndpoint.paths().stream(), Stream.of(BLOCKS_PREFIX + "{namespace}/{key}"))
                .toList();
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        HttpRequestHandler ofChain = chainEndpoint.handlerFor(request, path, tenant);
        if (ofChain != null) {
            return ofChain;
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
            return readBlock(request, namespace, HexKey.parse("key", rest.substring(slash + 1)));
        } catch (IllegalArgumentException mistake) {
            return new ProblemDetails(HttpResponseStatus.BAD_REQUEST, String.valueOf(mistake.getMessage())).toHandler();
        }
    }

    private HttpRequestHandler readBlock(HttpRequest request, Namespace namespace, EngineKey key) {
        String range = RangeHeader.headerOf(request);
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
        return switch (puts.start(namespace, key, parent)) {
            case PutStart.Ready ready -> ready.block();
            case PutStart.Unneeded unneeded ->
                (HttpRequestHandler.BodylessHandler) out -> out.sendEmpty(unneeded.status());
            case PutStart.Rejected rejected -> rejected.problem().toHandler();
        };
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
        return parent == null ? null : HexKey.parse("parent", parent.strip());
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
            RangeHeader part =
                    RangeHeader.of(range, NamespaceJson.shapeOf(namespace).bytes());
            boolean whole = withBody && part.isWhole();
            DiskBlock block = whole || !diskTimeout.isPositive() ? null : cache.diskBlock(namespace, key);
            if (block == null) {
                readWhole(out, range, withBody);
            } else if (!withBody) {
                tenantCounters.recordHit();
                out.sendHead(block.bytes());
            } else if (!part.isSatisfiable()) {
                tenantCounters.recordHit();
                out.sendUnsatisfiable(block.bytes());
            } else if (block.isPart(part.length())) {
                readPart(block, out, range, part);
            } else {
                readWhole(out, range, true);
            }
        }

        /// Reads only what is wanted of a block that is on disk alone, or all of it where that cannot be.
        private void readPart(DiskBlock block, HttpResponder out, @Nullable String range, RangeHeader part) {
            PartRead read = PartRead.start(block, part.from(), part.length(), outgoing, diskTimeout.toNanos());
            if (read == null) {
                replyThrottled(out);
                return;
            }
            out.awaitPart(read, there -> {
                if (there) {
                    tenantCounters.recordHit();
                    out.sendPart(read.bytes(), part.from(), block.bytes());
                } else {
                    readWhole(out, range, true);
                }
            });
        }

        private void readWhole(HttpResponder out, @Nullable String range, boolean withBody) {
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
                replyThrottled(out);
            }
        }

        private void replyThrottled(HttpResponder out) {
            tenantCounters.recordThrottled(lookup(key.toBlockKey(namespace)));
            out.sendProblem(ProblemDetails.sendLimitReached(outgoing));
        }

        private BlockLookup lookup(BlockKey wanted) {
            return new BlockLookup(namespace, wanted, 1, 0);
        }

        /// A block that the store knows and that could not be had was not brought from disk in time.
        private ProblemDetails missProblem(BlockKey wanted) {
            if (diskTimeout.isPositive() && cache.blocks(namespace).contains(wanted)) {
                tenantCounters.recordTimeout(lookup(wanted));
                return ProblemDetails.timedOut(HttpResponseStatus.SERVICE_UNAVAILABLE);
            }
            tenantCounters.recordMiss(lookup(wanted));
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

        /// Characters of a wrong key in an error.
        private static final int MAX_SHOWN = 64;

        private HexKey() {}

        /// The bytes of a key.
        ///
        /// @param name of the key in the request
        /// @throws IllegalArgumentException that names the key and says what it takes
        static byte[] bytes(String name, String text) {
            if (text.isEmpty() || text.length() > MAX_DIGITS || text.length() % 2 != 0 || !isHexadecimal(text)) {
                String shown = text.length() <= MAX_SHOWN ? text : text.substring(0, MAX_SHOWN) + "…";
                throw new IllegalArgumentException(name + " is '" + shown + "', of " + text.length()
                        + " characters; it takes 2 to " + MAX_DIGITS + " hexadecimal digits, two for each byte");
            }
            return HexFormat.of().parseHex(text);
        }

        static EngineKey parse(String name, String text) {
            return EngineKey.of(bytes(name, text));
        }

        private static boolean isHexadecimal(String text) {
            return text.chars().allMatch(HexFormat::isHexDigit);
        }
    }
}

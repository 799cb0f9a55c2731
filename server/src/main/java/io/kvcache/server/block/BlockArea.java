package io.kvcache.server.block;

import io.kvcache.core.BlockWriter;
import io.kvcache.core.KvCache;
import io.kvcache.core.Match;
import io.kvcache.core.identity.BlockChain;
import io.kvcache.core.identity.EngineKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.Area;
import io.kvcache.server.http.Exchange;
import io.kvcache.server.http.HttpReplies;
import io.kvcache.server.http.JsonRequest;
import io.kvcache.server.http.PathText;
import io.kvcache.server.http.Problem;
import io.kvcache.tiers.TieredKvCache;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.JsonNode;

/// `/v1/blocks`: the blocks of namespaces, one by one, and how much of a chain is here.
public final class BlockArea implements Area {

    /// Names the block before a block that is put; a query `parent` does the same.
    static final String PARENT = "KVCache-Parent";

    private static final String ALL = "/v1/blocks/";
    private static final String MATCH = ALL + "match";

    private final TieredKvCache cache;
    private final BlockNamespaces namespaces;
    private final Duration arrival;
    private final Predicate<String> limited;

    /// @param arrival how long a block may take from disk; zero in a store without disks
    /// @param limited whether a tenant has a quota: blocks are not counted against it, so such a tenant
    ///     stores none
    public BlockArea(TieredKvCache cache, BlockNamespaces namespaces, Duration arrival, Predicate<String> limited) {
        this.limited = limited;
        this.cache = cache;
        this.namespaces = namespaces;
        this.arrival = arrival;
    }

    @Override
    public List<String> paths() {
        return List.of(MATCH, ALL + "{namespace}/{key}");
    }

    @Override
    public @Nullable Exchange find(HttpRequest request, String path, String tenant) {
        if (path.equals(MATCH)) {
            return request.method().name().equals("POST")
                    ? new JsonRequest((body, out) -> match(request, body, tenant, out))
                    : HttpReplies.notAllowed(request, "POST");
        }
        return path.startsWith(ALL) ? one(request, path.substring(ALL.length()), tenant) : null;
    }

    /// A name may contain slashes, a key may not.
    private Exchange one(HttpRequest request, String rest, String tenant) {
        int slash = rest.lastIndexOf('/');
        String name = slash < 1 ? null : PathText.decode(rest.substring(0, slash));
        if (name == null) {
            return new Problem(
                            HttpResponseStatus.BAD_REQUEST,
                            "a block is " + ALL + "{namespace}/{key}, the name percent-encoded, the key hexadecimal")
                    .exchange();
        }
        Namespace namespace = namespaces.find(tenant, name);
        if (namespace == null) {
            return NamespaceArea.unknown(name).exchange();
        }
        Problem shape = Shapes.problem(request.headers(), namespace);
        if (shape != null) {
            return shape.exchange();
        }
        try {
            return block(request, namespace, KeyText.parse(rest.substring(slash + 1)));
        } catch (IllegalArgumentException mistake) {
            return new Problem(HttpResponseStatus.BAD_REQUEST, String.valueOf(mistake.getMessage())).exchange();
        }
    }

    private Exchange block(HttpRequest request, Namespace namespace, EngineKey key) {
        String range = request.headers().get(HttpHeaderNames.RANGE);
        BlockRead read = new BlockRead(cache, namespace, key, arrival);
        return switch (request.method().name()) {
            case "GET" -> (Exchange.Plain) out -> read.answer(out, range, true);
            case "HEAD" -> (Exchange.Plain) out -> read.answer(out, range, false);
            case "PUT" -> put(request, namespace, key);
            default -> HttpReplies.notAllowed(request, "GET, HEAD, PUT");
        };
    }

    private Exchange put(HttpRequest request, Namespace namespace, EngineKey key) {
        EngineKey parent = parent(request);
        long bytes = HttpUtil.getContentLength(request, -1L);
        long blockBytes = NamespaceText.shapeOf(namespace).bytes();
        if (bytes < 0) {
            return new Problem(HttpResponseStatus.LENGTH_REQUIRED, "a PUT takes a Content-Length").exchange();
        }
        if (limited.test(namespace.tenant())) {
            return Problem.named(
                            HttpResponseStatus.FORBIDDEN,
                            "quota",
                            "tenant " + namespace.tenant()
                                    + " has a quota, which blocks are not counted against; it stores objects only")
                    .exchange();
        }
        if (bytes != blockBytes) {
            return BlockWrite.wrongLength(namespace, bytes).exchange();
        }
        BlockWriter writer = cache.put(namespace, key, parent, KvCache.NO_WAIT);
        return switch (writer.outcome()) {
            case RESERVED -> new BlockWrite(namespace, writer);
            case PRESENT, BUSY, NO_PARENT, NO_ROOM -> {
                writer.close();
                yield BlockWrite.without(writer.outcome());
            }
        };
    }

    /// The block before, by header or by query; null for a first block.
    private static @Nullable EngineKey parent(HttpRequest request) {
        String header = request.headers().get(PARENT);
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
        return parent == null ? null : KeyText.parse(parent.strip());
    }

    private void match(HttpRequest request, JsonNode body, String tenant, HttpReplies out) {
        JsonRequest.requireOnly(body, List.of("namespace", "keys"));
        String name = JsonRequest.text(body, "namespace", "");
        Namespace namespace = namespaces.find(tenant, name);
        if (namespace == null) {
            out.problem(NamespaceArea.unknown(name));
            return;
        }
        Problem shape = Shapes.problem(request.headers(), namespace);
        if (shape != null) {
            out.problem(shape);
            return;
        }
        Match match = cache.match(BlockChain.ofEngineKeys(namespace, keys(body)));
        Map<String, Object> answer = new LinkedHashMap<>();
        answer.put("namespace", name);
        answer.put("blocks", match.blocks());
        answer.put("tokens", match.blocks() * namespace.blockTokens());
        answer.put("hostBlocks", match.deviceBlocks() + match.hostBlocks());
        answer.put("diskBlocks", match.diskBlocks());
        out.json(HttpResponseStatus.OK, answer);
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
            bytes.add(KeyText.bytes(key.stringValue()));
        }
        return bytes;
    }
}

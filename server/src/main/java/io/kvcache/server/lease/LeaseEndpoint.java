package io.kvcache.server.lease;

import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.PercentDecoder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.ReadResult;
import io.kvcache.tiers.TieredKvCache;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/// `/v1/kv` and `/v1/leases`, as SageMaker HyperPod's clients speak them: a value is put over HTTP, and
/// read through a file in memory while a lease holds it. It is the object `{bucket}/{key}` to everybody
/// else.
public final class LeaseEndpoint implements HttpEndpoint {

    private static final String KV_PREFIX = "/v1/kv/";
    private static final String LEASES_SUFFIX = "/leases";
    private static final String LEASE_PREFIX = "/v1/leases/";
    private static final String RELEASE_SUFFIX = "/release";

    private final TieredKvCache cache;
    private final Map<String, Keyspace> tenants;
    private final Leases leases;
    private final Duration maxDuration;

    /// @param tenants the objects of each tenant by its name
    public LeaseEndpoint(TieredKvCache cache, Map<String, Keyspace> tenants, Leases leases, Duration longest) {
        this.cache = cache;
        this.tenants = tenants;
        this.leases = leases;
        this.maxDuration = longest;
    }

    @Override
    public List<String> paths() {
        return List.of(
                KV_PREFIX + "{bucket}/{key}",
                KV_PREFIX + "{bucket}/{key}" + LEASES_SUFFIX,
                LEASE_PREFIX + "{id}" + RELEASE_SUFFIX);
    }

    @Override
    public @Nullable HttpRequestHandler handlerFor(HttpRequest request, String path, String tenant) {
        Keyspace keyspace = tenants.get(tenant);
        boolean post = request.method().name().equals("POST");
        if (path.startsWith(LEASE_PREFIX)
                && path.endsWith(RELEASE_SUFFIX)
                && path.length() > LEASE_PREFIX.length() + RELEASE_SUFFIX.length()) {
            String id = path.substring(LEASE_PREFIX.length(), path.length() - RELEASE_SUFFIX.length());
            return post
                    ? (HttpRequestHandler.BodylessHandler) out -> release(id, out)
                    : HttpResponder.methodNotAllowed(request, "POST");
        }
        if (!path.startsWith(KV_PREFIX) || keyspace == null) {
            return null;
        }
        boolean asksForLease = post && path.endsWith(LEASES_SUFFIX);
        String name = path.substring(KV_PREFIX.length(), path.length() - (asksForLease ? LEASES_SUFFIX.length() : 0));
        byte[] key = parseKey(name);
        if (key == null) {
            return new ProblemDetails(HttpResponseStatus.BAD_REQUEST, "it takes {bucket}/{key}, percent-encoded")
                    .toHandler();
        }
        if (asksForLease) {
            return lease(request, keyspace, key);
        }
        return request.method().name().equals("PUT")
                ? put(request, keyspace, key)
                : HttpResponder.methodNotAllowed(request, "PUT");
    }

    private static byte @Nullable [] parseKey(String name) {
        String decoded = PercentDecoder.decode(name);
        int slash = name.indexOf('/');
        if (decoded == null || slash < 1 || slash == name.length() - 1) {
            return null;
        }
        byte[] key = decoded.getBytes(StandardCharsets.UTF_8);
        return key.length > Keyspace.MAX_KEY_BYTES ? null : key;
    }

    private static HttpRequestHandler put(HttpRequest request, Keyspace keyspace, byte[] key) {
        long bytes = HttpUtil.getContentLength(request, -1L);
        if (bytes < 0) {
            return new ProblemDetails(HttpResponseStatus.LENGTH_REQUIRED, "a PUT takes a Content-Length").toHandler();
        }
        if (key.length > keyspace.keyspaceLimits().keyBytes()) {
            return new ProblemDetails(
                            HttpResponseStatus.BAD_REQUEST,
                            "a key of " + key.length + " bytes; it takes 1 to "
                                    + keyspace.keyspaceLimits().keyBytes())
                    .toHandler();
        }
        if (bytes > keyspace.keyspaceLimits().valueBytes()) {
            return new ProblemDetails(
                            HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE,
                            "a value of " + bytes + " bytes; it takes 0 to "
                                    + keyspace.keyspaceLimits().valueBytes())
                    .toHandler();
        }
        return keyspace.touch(key)
                ? PutKvHandler.alreadyExists().toHandler()
                : new PutKvHandler(keyspace.put(key, bytes));
    }

    private HttpRequestHandler lease(HttpRequest request, Keyspace keyspace, byte[] key) {
        LeaseRequest terms;
        try {
            terms = LeaseRequest.of(new QueryStringDecoder(request.uri()).parameters(), maxDuration);
        } catch (IllegalArgumentException mistake) {
            return new ProblemDetails(HttpResponseStatus.BAD_REQUEST, String.valueOf(mistake.getMessage())).toHandler();
        }
        return (HttpRequestHandler.BodylessHandler) out -> {
            ReadResult readResult = keyspace.read(key);
            if (readResult.outcome() == ReadResult.Outcome.ON_DISK) {
                out.awaitValue(keyspace, key, terms.waitNanos(), come -> lease(keyspace, come, terms, out));
            } else {
                lease(keyspace, readResult, terms, out);
            }
        };
    }

    /// A status other than 200 means to clients that there is no lease; 504 is what they know for a value that did not
    /// come within their `timeout_ms`, be it that there is none.
    private void lease(Keyspace keyspace, ReadResult readResult, LeaseRequest terms, HttpResponder out) {
        PinnedValue value = readResult.value();
        if (value != null) {
            lease(value, terms.durationNanos(), out);
            return;
        }
        out.sendProblem(
                switch (readResult.outcome()) {
                    case THROTTLED ->
                        ProblemDetails.sendLimitReached(
                                keyspace.keyspaceLimits().outgoing());
                    case TIMED_OUT -> ProblemDetails.timedOut(HttpResponseStatus.GATEWAY_TIMEOUT);
                    case HIT, MISS, ON_DISK ->
                        new ProblemDetails(HttpResponseStatus.GATEWAY_TIMEOUT, "there is no such value");
                });
    }

    private void lease(PinnedValue value, long forNanos, HttpResponder out) {
        List<Map<String, Long>> offsets = new ArrayList<>();
        value.visit(
                0,
                value.bytes(),
                (memory, from, bytes) ->
                        offsets.add(Map.of("offset", cache.offsetOf(memory.asSlice(from, bytes)), "len", bytes)));
        String id = leases.grant(value, forNanos);
        if (id == null) {
            out.sendProblem(new ProblemDetails(
                    HttpResponseStatus.SERVICE_UNAVAILABLE, "as much is leased as may be; release some, or wait"));
        } else {
            out.sendJson(HttpResponseStatus.OK, Map.of("id", id, "offsets", offsets));
        }
    }

    private void release(String id, HttpResponder out) {
        if (leases.release(id)) {
            out.sendEmpty(HttpResponseStatus.OK);
        } else {
            out.sendProblem(
                    new ProblemDetails(HttpResponseStatus.NOT_FOUND, "there is no such lease; it may have expired"));
        }
    }
}

package io.kvcache.server.lease;

import io.kvcache.server.http.HttpEndpoint;
import io.kvcache.server.http.HttpRequestHandler;
import io.kvcache.server.http.HttpResponder;
import io.kvcache.server.http.PercentDecoder;
import io.kvcache.server.http.ProblemDetails;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.net.SlotIo;
import io.kvcache.tiers.TieredKvCache;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
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

    /// Replies to a request for a lease. To clients, every status but 200 means that they have no lease. They
    /// expect 504 for a value that did not arrive within their `timeout_ms`, also for one that does not exist.
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
                    case HIT, MISS, ON_DISK -> new ProblemDetails(HttpResponseStatus.GATEWAY_TIMEOUT, "no such value");
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
                    HttpResponseStatus.SERVICE_UNAVAILABLE,
                    "leases are at lease.percent of the memory; release some, or wait"));
        } else {
            out.sendJson(HttpResponseStatus.OK, Map.of("id", id, "offsets", offsets));
        }
    }

    private void release(String id, HttpResponder out) {
        if (leases.release(id)) {
            out.sendEmpty(HttpResponseStatus.OK);
        } else {
            out.sendProblem(new ProblemDetails(HttpResponseStatus.NOT_FOUND, "no such lease; it may have expired"));
        }
    }

    /// The times that a client requests of a lease.
    ///
    /// A client reads as long as it believes to hold the lease, which is the time that it requested. So the server
    /// rejects a time that is too long, rather than shortening it.
    ///
    /// @param durationNanos how long it holds
    /// @param waitNanos how long the value may take to arrive from disk, if others may wait as long
    record LeaseRequest(long durationNanos, long waitNanos) {

        private static final Duration DEFAULT_DURATION = Duration.ofSeconds(30);

        /// Longer than any client waits for a reply.
        private static final long MAX_WAIT_MILLIS = TimeUnit.MINUTES.toMillis(10);

        private static final Pattern SECONDS = Pattern.compile("\\d{1,9}(\\.\\d{1,9})?");
        private static final Pattern MILLIS = Pattern.compile("\\d{1,9}");
        private static final int MAX_QUOTED_CHARS = 32;

        /// Reads `ttl_s`, seconds with or without a fraction, and `timeout_ms`, whole milliseconds.
        ///
        /// @param query of the request
        /// @param maxDuration lease
        /// @throws IllegalArgumentException that says what is taken
        static LeaseRequest of(Map<String, List<String>> query, Duration maxDuration) {
            return new LeaseRequest(
                    durationNanos(firstParameter(query, "ttl_s"), maxDuration),
                    waitNanos(firstParameter(query, "timeout_ms")));
        }

        private static @Nullable String firstParameter(Map<String, List<String>> query, String name) {
            List<String> given = query.get(name);
            return given == null ? null : given.getFirst();
        }

        private static long durationNanos(@Nullable String text, Duration maxDuration) {
            if (text == null) {
                return Math.min(DEFAULT_DURATION.toNanos(), maxDuration.toNanos());
            }
            long nanos = SECONDS.matcher(text).matches()
                    ? new BigDecimal(text)
                            .movePointRight(9)
                            .setScale(0, RoundingMode.UNNECESSARY)
                            .longValueExact()
                    : 0;
            if (nanos < 1 || nanos > maxDuration.toNanos()) {
                throw new IllegalArgumentException("ttl_s is " + truncate(text)
                        + "; it takes seconds, more than 0 and at most " + seconds(maxDuration) + " (lease.longest)");
            }
            return nanos;
        }

        private static String seconds(Duration time) {
            return BigDecimal.valueOf(time.toMillis(), 3).stripTrailingZeros().toPlainString();
        }

        private static long waitNanos(@Nullable String text) {
            if (text == null) {
                return Long.MAX_VALUE;
            }
            long millis = MILLIS.matcher(text).matches() ? Long.parseLong(text) : -1;
            if (millis < 0 || millis > MAX_WAIT_MILLIS) {
                throw new IllegalArgumentException(
                        "timeout_ms is " + truncate(text) + "; it takes whole milliseconds, 0 to " + MAX_WAIT_MILLIS);
            }
            return TimeUnit.MILLISECONDS.toNanos(millis);
        }

        private static String truncate(String text) {
            return text.length() <= MAX_QUOTED_CHARS ? text : text.substring(0, MAX_QUOTED_CHARS) + "…";
        }
    }

    /// PUT of a value that was not there. Clients take 200 and 409 alike: the value is there then.
    private static final class PutKvHandler implements HttpRequestHandler {

        private final PendingPut put;

        PutKvHandler(PendingPut put) {
            this.put = put;
        }

        static ProblemDetails alreadyExists() {
            return ProblemDetails.withType(HttpResponseStatus.CONFLICT, "already-there", "the value is there already");
        }

        @Override
        public void onBody(ByteBuf part) {
            if (put.state() == PendingPut.State.WRITING) {
                SlotIo.read(part, part.readableBytes(), put::writableBuffer);
            } else {
                part.skipBytes(part.readableBytes());
            }
        }

        @Override
        public void respond(HttpResponder out) {
            switch (put.state()) {
                case WRITING -> {
                    if (put.remainingBytes() > 0) {
                        out.sendProblem(new ProblemDetails(
                                HttpResponseStatus.BAD_REQUEST, "the body is shorter than its Content-Length"));
                    } else if (put.commit(0, TensorMetadata.NONE, Condition.IF_ABSENT)) {
                        out.sendEmpty(HttpResponseStatus.OK);
                    } else {
                        out.sendProblem(alreadyExists());
                    }
                }
                case REJECTED, DECLINED ->
                    out.sendProblem(new ProblemDetails(
                            HttpResponseStatus.INSUFFICIENT_STORAGE,
                            "no room: everything that could be evicted is in use; try again"));
            }
        }

        @Override
        public void close() {
            put.close();
        }
    }
}

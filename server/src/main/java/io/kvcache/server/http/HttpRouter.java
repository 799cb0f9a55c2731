package io.kvcache.server.http;

import io.kvcache.server.access.PasswordAuthenticator.AuthResult;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.forward.RequestForwarder;
import io.kvcache.server.http.HttpConfig.TextEndpoint;
import io.kvcache.server.http.HttpProtocol.MalformedRequestException;
import io.kvcache.server.http.HttpResponder.PinnedBytes;
import io.kvcache.server.http.HttpResponder.RangeHeader;
import io.kvcache.server.keyspace.HashSlotOwnership;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Keyspace.ReadResult;
import io.kvcache.server.keyspace.KeyspaceRouter;
import io.kvcache.server.keyspace.PendingPut;
import io.kvcache.server.keyspace.PendingPut.Condition;
import io.kvcache.server.keyspace.PinnedValue;
import io.kvcache.server.keyspace.PinnedValue.TensorMetadata;
import io.kvcache.server.net.SlotIo;
import io.kvcache.server.quota.PartRead;
import io.netty.buffer.ByteBuf;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectDecoder;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.TooLongHttpHeaderException;
import io.netty.handler.codec.http.TooLongHttpLineException;
import io.netty.util.NetUtil;
import java.util.Locale;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Chooses the handler of each request.
final class HttpRouter {

    private static final String OBJECT_PREFIX = "/v1/objects/";

    private static final Set<HttpMethod> READS = Set.of(HttpMethod.GET, HttpMethod.HEAD);

    /// Names a tenant by its cache salt.
    private static final String SALT_HEADER = "KVCache-Salt";

    private final HttpConfig site;
    private final CrossSiteGuard crossSiteGuard;

    HttpRouter(HttpConfig site) {
        this.site = site;
        crossSiteGuard = new CrossSiteGuard(
                site.listenerAuth().anonymousTenant() == null ? Set.of(HttpConfig.ANY_HOST) : site.hosts());
    }

    /// Returns the handler of a request that needs no authentication, or null when the client must authenticate.
    @Nullable
    HttpRequestHandler findPublic(HttpRequest request) {
        if (request.decoderResult().isFailure()) {
            return malformedRequest(request.decoderResult().cause());
        }
        String foreign = crossSiteGuard.findProblem(request.headers(), isConsolePage(request));
        if (foreign != null) {
            return problemHandler(HttpResponseStatus.FORBIDDEN, foreign);
        }
        if (SignInPage.isStyle(pathOf(request))) {
            return endpointHandler(request, pathOf(request), "");
        }
        TextEndpoint textEndpoint = site.textEndpoints().get(pathOf(request));
        return textEndpoint != null && textEndpoint.isPublic() ? textEndpoint(request, pathOf(request)) : null;
    }

    /// Returns whether a browser opens a page of the console, as by a link on a page of another site. It
    /// shows nothing of the server by itself, and what it asks for then comes from the same site.
    private static boolean isConsolePage(HttpRequest request) {
        String path = pathOf(request);
        return request.method().equals(HttpMethod.GET)
                && (path.equals("/") || path.equals("/console") || path.equals("/console/"))
                && request.headers().get("sec-fetch-mode", "").equals("navigate")
                && request.headers().get("sec-fetch-dest", "").equals("document");
    }

    private static HttpRequestHandler malformedRequest(Throwable cause) {
        return switch (cause) {
            case MalformedRequestException malformed ->
                problemHandler(HttpResponseStatus.BAD_REQUEST, String.valueOf(malformed.getMessage()));
            case TooLongHttpLineException _ ->
                problemHandler(
                        HttpResponseStatus.REQUEST_URI_TOO_LONG,
                        "a request's line takes up to " + HttpProtocol.MAX_LINE + " bytes");
            case TooLongHttpHeaderException _ ->
                problemHandler(
                        HttpResponseStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                        "a request's headers take up to " + HttpObjectDecoder.DEFAULT_MAX_HEADER_SIZE + " bytes");
            case IllegalArgumentException wrong
            when String.valueOf(wrong.getMessage()).contains("Content-Length") ->
                problemHandler(
                        HttpResponseStatus.BAD_REQUEST, "Content-Length takes one whole number of bytes, 0 and up");
            default -> problemHandler(HttpResponseStatus.BAD_REQUEST, "this is not HTTP/1.1");
        };
    }

    /// Returns the handler of a request.
    ///
    /// @param sender the log-in of the client
    HttpRequestHandler route(HttpRequest request, AuthResult sender) {
        if (sender.tenant() == null) {
            return rejectedHandler(request, sender.outcome());
        }
        String tenant = tenantOf(request, sender.tenant());
        if (tenant == null) {
            return ProblemDetails.withType(
                            HttpResponseStatus.FORBIDDEN,
                            "unknown-salt",
                            "the salt is not of a tenant that this client may act as")
                    .toHandler();
        }
        return route(request, pathOf(request), tenant);
    }

    private static HttpRequestHandler rejectedHandler(HttpRequest request, AuthResult.Outcome outcome) {
        boolean throttled = outcome == AuthResult.Outcome.THROTTLED;
        boolean missing = outcome == AuthResult.Outcome.MISSING;
        HttpResponseStatus status = throttled ? HttpResponseStatus.TOO_MANY_REQUESTS : HttpResponseStatus.UNAUTHORIZED;
        if (SignInPage.isFor(request, pathOf(request))) {
            return SignInPage.handler(
                    status,
                    pathOf(request),
                    throttled ? "Too many failed attempts" : missing ? "Sign in" : "Wrong name or password",
                    throttled
                            ? "From this address, too many names and passwords were wrong. Try again in a minute."
                            : "This server shows its console to those who have a name and a password.");
        }
        return problemHandler(
                status,
                throttled
                        ? "too many failed attempts; try again later"
                        : missing
                                ? "unauthenticated: this listener takes Basic or Bearer authentication"
                                : "wrong user or password");
    }

    /// The tenant whose values a request is about, or null when its salt is another tenant's. An unauthenticated
    /// client acts as any tenant whose salt it presents.
    private @Nullable String tenantOf(HttpRequest request, String sender) {
        String salt = request.headers().get(SALT_HEADER);
        if (salt == null) {
            return sender;
        }
        String owner = site.ownershipRules().get().ownerOfSalt(salt.strip());
        return sender.equals(TenantConfig.DEFAULT) || sender.equals(owner) ? owner : null;
    }

    private HttpRequestHandler route(HttpRequest request, String path, String tenant) {
        KeyspaceRouter keyspaceRouter = site.routers().get(tenant);
        boolean object = path.startsWith(OBJECT_PREFIX) && keyspaceRouter != null;
        ProblemDetails refusal = READS.contains(request.method()) ? null : problemOfChange(request, object);
        if (refusal != null) {
            return refusal.toHandler();
        }
        if (path.startsWith(OBJECT_PREFIX) && keyspaceRouter != null) {
            return objectHandler(request, path, keyspaceRouter, tenant);
        }
        HttpRequestHandler found = endpointHandler(request, path, tenant);
        return found == null ? textEndpoint(request, path) : found;
    }

    private @Nullable HttpRequestHandler endpointHandler(HttpRequest request, String path, String tenant) {
        for (HttpEndpoint httpEndpoint : site.endpoints()) {
            HttpRequestHandler found = httpEndpoint.handlerFor(request, path, tenant);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /// Whatever changes something and is done only under a condition, or to a part, is done so or not at all.
    ///
    /// @param object whether it is about an object
    private static @Nullable ProblemDetails problemOfChange(HttpRequest request, boolean object) {
        ProblemDetails problem = ObjectConditions.problemOfWrite(request);
        boolean conditional = request.headers().contains(HttpHeaderNames.IF_MATCH)
                || request.headers().contains(HttpHeaderNames.IF_NONE_MATCH);
        return problem == null && conditional && !object
                ? new ProblemDetails(
                        HttpResponseStatus.NOT_IMPLEMENTED,
                        "If-Match and If-None-Match with " + request.method() + " are taken at /v1/objects only")
                : problem;
    }

    private static String pathOf(HttpRequest request) {
        int query = request.uri().indexOf('?');
        return query < 0 ? request.uri() : request.uri().substring(0, query);
    }

    private HttpRequestHandler textEndpoint(HttpRequest request, String path) {
        TextEndpoint textEndpoint = site.textEndpoints().get(path);
        if (textEndpoint == null) {
            return problemHandler(
                    HttpResponseStatus.NOT_FOUND,
                    "there is no " + path + "; there are "
                            + (site.routers().isEmpty() ? "" : OBJECT_PREFIX + "{key}, ")
                            + knownPaths());
        }
        return HttpResponder.pageHandler(request, textEndpoint);
    }

    private String knownPaths() {
        Stream<String> all = Stream.concat(
                site.textEndpoints().keySet().stream(),
                site.endpoints().stream().flatMap(httpEndpoint -> httpEndpoint.paths().stream()));
        return String.join(", ", all.sorted().toList());
    }

    private HttpRequestHandler objectHandler(
            HttpRequest request, String path, KeyspaceRouter keyspaceRouter, String tenant) {
        byte[] key = PercentDecoder.decodeBytes(path, OBJECT_PREFIX.length());
        Keyspace keyspace = key == null ? keyspaceRouter.ownKeyspace() : keyspaceRouter.of(key);
        if (key == null
                || key.length < 1
                || key.length > keyspace.keyspaceLimits().keyBytes()) {
            return problemHandler(
                    HttpResponseStatus.BAD_REQUEST,
                    "a key takes 1 to " + keyspace.keyspaceLimits().keyBytes()
                            + " bytes, percent-encoded where needed");
        }
        ObjectConditions conditions;
        try {
            conditions = ObjectConditions.of(request);
        } catch (IllegalArgumentException malformed) {
            return problemHandler(HttpResponseStatus.BAD_REQUEST, String.valueOf(malformed.getMessage()));
        }
        HashSlotOwnership owned = site.owned();
        if (owned != null && !owned.map().isOwn(keyspaceRouter.slotOf(key))) {
            return problemHandler(HttpResponseStatus.MISDIRECTED_REQUEST, "another server of the cluster owns the key");
        }
        RequestForwarder forwarder = site.forwarder();
        if (forwarder != null && forwarder.isElsewhere(keyspaceRouter.slotOf(key))) {
            return switch (request.method().name()) {
                case "GET", "HEAD", "DELETE" ->
                    ForwardedObjectHandler.of(forwarder, tenant, keyspaceRouter, key, request);
                case "PUT" ->
                    checkedPut(
                            request,
                            keyspace,
                            bytes -> ForwardedObjectHandler.ofPut(
                                    forwarder, tenant, keyspaceRouter, key, request, bytes));
                default -> methodNotAllowed(request, "GET, HEAD, PUT, DELETE");
            };
        }
        return switch (request.method().name()) {
            case "GET" -> new GetObjectHandler(keyspace, key, conditions, true);
            case "HEAD" -> new GetObjectHandler(keyspace, key, conditions, false);
            case "DELETE" -> new DeleteObjectHandler(keyspace, key, conditions);
            case "PUT" ->
                checkedPut(
                        request,
                        keyspace,
                        bytes -> new PutObjectHandler(keyspace, key, keyspace.put(key, bytes), conditions));
            default -> methodNotAllowed(request, "GET, HEAD, PUT, DELETE");
        };
    }

    /// @param put makes the handler of a PUT of so many bytes
    private static HttpRequestHandler checkedPut(
            HttpRequest request, Keyspace keyspace, LongFunction<HttpRequestHandler> put) {
        long bytes = HttpUtil.getContentLength(request, -1L);
        if (bytes < 0) {
            return problemHandler(HttpResponseStatus.LENGTH_REQUIRED, "a PUT takes a Content-Length");
        }
        if (bytes > keyspace.keyspaceLimits().valueBytes()) {
            return problemHandler(
                    HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE,
                    "an object of " + bytes + " bytes; it takes 0 to "
                            + keyspace.keyspaceLimits().valueBytes());
        }
        return put.apply(bytes);
    }

    private static HttpRequestHandler methodNotAllowed(HttpRequest request, String allowed) {
        return HttpResponder.methodNotAllowed(request, allowed);
    }

    private static HttpRequestHandler problemHandler(HttpResponseStatus status, String detail) {
        return new ProblemDetails(status, detail).toHandler();
    }

    /// The label under which a request is counted: its method and the first known words of its path.
    static final class HttpRequestLabel {

        private static final Set<String> METHODS = Set.of("GET", "HEAD", "PUT", "POST", "DELETE");
        private static final Set<String> RESOURCES = Stream.concat(
                        Stream.of("objects"), OperatorResources.NAMES.stream())
                .collect(Collectors.toUnmodifiableSet());
        private static final String ROOT = "/v1/";
        private static final String OTHER = "other";

        private HttpRequestLabel() {}

        static String of(HttpRequest request) {
            String method = request.method().name();
            String uri = request.uri();
            if (!METHODS.contains(method)) {
                return OTHER;
            }
            if (!uri.startsWith(ROOT)) {
                return uri.startsWith("/health/") || uri.startsWith("/metrics") || uri.startsWith("/console")
                        ? "get_page"
                        : OTHER;
            }
            String thing = resourceOf(uri);
            return RESOURCES.contains(thing) ? method.toLowerCase(Locale.ROOT) + "_" + thing : OTHER;
        }

        private static String resourceOf(String uri) {
            int end = ROOT.length();
            while (end < uri.length() && Character.isLetter(uri.charAt(end))) {
                end++;
            }
            return uri.substring(ROOT.length(), end);
        }
    }

    /// GET and HEAD of an object.
    private static final class GetObjectHandler implements HttpRequestHandler.BodylessHandler {

        private final Keyspace keyspace;
        private final byte[] key;
        private final ObjectConditions conditions;
        private final boolean withBody;

        /// @param withBody false for HEAD
        GetObjectHandler(Keyspace keyspace, byte[] key, ObjectConditions conditions, boolean withBody) {
            this.keyspace = keyspace;
            this.key = key;
            this.conditions = conditions;
            this.withBody = withBody;
        }

        @Override
        public void respond(HttpResponder out) {
            ReadResult readResult = keyspace.read(key);
            if (readResult.outcome() != ReadResult.Outcome.ON_DISK) {
                reply(readResult, out);
            } else if (!readPart(out)) {
                out.awaitValue(keyspace, key, come -> reply(come, out));
            }
        }

        /// Reads only what is wanted of a value that is on disk alone.
        ///
        /// @return false when all of it is to be read
        private boolean readPart(HttpResponder out) {
            String range = conditions.range();
            long bytes = range != null && !conditions.needsTag() ? keyspace.onDiskBytes(key) : 0;
            RangeHeader part = RangeHeader.of(range, bytes);
            if (bytes > 0 && !part.isSatisfiable()) {
                out.sendUnsatisfiable(bytes);
                return true;
            }
            PartRead read = part.isWhole() ? null : keyspace.readPart(key, bytes, part.from(), part.length());
            if (read == null) {
                return false;
            }
            out.awaitPart(read, there -> {
                if (there) {
                    keyspace.onPartRead(key, read.bytes().length);
                    String etag = ObjectConditions.etag(read.checksum(), bytes);
                    out.sendPart(read.bytes(), part.from(), bytes, headers -> headers.set(HttpHeaderNames.ETAG, etag));
                } else {
                    out.awaitValue(keyspace, key, come -> reply(come, out));
                }
            });
            return true;
        }

        private void reply(ReadResult readResult, HttpResponder out) {
            PinnedValue value = readResult.value();
            if (value != null && !withBody && !keyspace.announceExists(key)) {
                value.close(); // it cannot be kept until the GET that follows
                out.sendProblem(notFound());
                return;
            }
            if (value != null) {
                send(value, out);
                return;
            }
            out.sendProblem(
                    switch (readResult.outcome()) {
                        case THROTTLED ->
                            ProblemDetails.sendLimitReached(
                                    keyspace.keyspaceLimits().outgoing());
                        case TIMED_OUT -> ProblemDetails.timedOut(HttpResponseStatus.SERVICE_UNAVAILABLE);
                        case HIT, MISS, ON_DISK -> notFound();
                    });
        }

        private void send(PinnedValue value, HttpResponder out) {
            String etag = ObjectConditions.etag(value);
            HttpResponseStatus status = conditions.statusOfRead(etag);
            if (status.equals(HttpResponseStatus.OK)) {
                out.sendPinned(
                        PinnedBytes.of(value),
                        conditions.rangeOf(etag),
                        withBody,
                        headers -> headers.set(HttpHeaderNames.ETAG, etag));
                return;
            }
            value.close();
            if (status.equals(HttpResponseStatus.NOT_MODIFIED)) {
                out.sendNotModified(etag);
            } else {
                out.sendProblem(ObjectConditions.failed());
            }
        }
    }

    private static ProblemDetails notFound() {
        return new ProblemDetails(HttpResponseStatus.NOT_FOUND, "no such object");
    }

    /// Finds the value that a conditional write is about, in host memory or on disk.
    ///
    /// @param then gets it, to be closed, or null where there is none
    private static void findValue(
            Keyspace keyspace, byte[] key, HttpResponder out, Consumer<@Nullable PinnedValue> then) {
        PinnedValue held = keyspace.hold(key);
        if (held != null || !keyspace.isOnDisk(key)) {
            then.accept(held);
            return;
        }
        out.awaitValue(keyspace, key, come -> {
            switch (come.outcome()) {
                case HIT, MISS, ON_DISK -> then.accept(come.value());
                case THROTTLED ->
                    out.sendProblem(ProblemDetails.sendLimitReached(
                            keyspace.keyspaceLimits().outgoing()));
                case TIMED_OUT -> out.sendProblem(ProblemDetails.timedOut(HttpResponseStatus.SERVICE_UNAVAILABLE));
            }
        });
    }

    /// DELETE of an object.
    private static final class DeleteObjectHandler implements HttpRequestHandler.BodylessHandler {

        private final Keyspace keyspace;
        private final byte[] key;
        private final ObjectConditions conditions;

        DeleteObjectHandler(Keyspace keyspace, byte[] key, ObjectConditions conditions) {
            this.keyspace = keyspace;
            this.key = key;
            this.conditions = conditions;
        }

        @Override
        public void respond(HttpResponder out) {
            if (conditions.isUnconditional()) {
                reply(keyspace.delete(key), notFound(), out);
            } else {
                findValue(keyspace, key, out, value -> delete(value, out));
            }
        }

        private void delete(@Nullable PinnedValue value, HttpResponder out) {
            if (value == null) {
                out.sendProblem(notFound());
                return;
            }
            try (value) {
                boolean deleted = conditions.allowWrite(ObjectConditions.etag(value)) && keyspace.delete(key, value);
                reply(deleted, ObjectConditions.failed(), out);
            }
        }

        private static void reply(boolean deleted, ProblemDetails otherwise, HttpResponder out) {
            if (deleted) {
                out.sendEmpty(HttpResponseStatus.NO_CONTENT);
            } else {
                out.sendProblem(otherwise);
            }
        }
    }

    /// PUT of an object.
    private static final class PutObjectHandler implements HttpRequestHandler {

        private final Keyspace keyspace;
        private final byte[] key;
        private final PendingPut put;
        private final ObjectConditions conditions;

        PutObjectHandler(Keyspace keyspace, byte[] key, PendingPut put, ObjectConditions conditions) {
            this.keyspace = keyspace;
            this.key = key;
            this.put = put;
            this.conditions = conditions;
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
                        return;
                    }
                    if (conditions.isUnconditional()) {
                        put.commit(0, TensorMetadata.NONE, Condition.ALWAYS);
                        out.sendEmpty(HttpResponseStatus.NO_CONTENT);
                    } else {
                        findValue(keyspace, key, out, value -> commit(value, out));
                    }
                }
                case REJECTED, DECLINED ->
                    out.sendProblem(new ProblemDetails(
                            HttpResponseStatus.INSUFFICIENT_STORAGE,
                            "no room: everything that could be evicted is in use; try again"));
            }
        }

        /// The key's lock is held while the value is compared with the one that the conditions were met by,
        /// and replaced.
        private void commit(@Nullable PinnedValue older, HttpResponder out) {
            boolean stored = false;
            try (older) {
                if (conditions.allowWrite(older == null ? null : ObjectConditions.etag(older))) {
                    stored = (older != null && conditions.isOfPresence())
                            ? put.commit(0, TensorMetadata.NONE, Condition.IF_PRESENT)
                            : put.commitInPlaceOf(older, 0);
                }
            }
            if (stored) {
                out.sendEmpty(HttpResponseStatus.NO_CONTENT);
            } else {
                out.sendProblem(ObjectConditions.failed());
            }
        }

        @Override
        public void close() {
            put.close();
        }
    }

    /// Keeps web pages away from a listener without authentication.
    ///
    /// A page of another site may send requests here from a user's browser: those carry its `Origin`. Or it may
    /// let its own name point here: then the name is in `Host`, where a server on loopback expects an IP address
    /// or localhost.
    static final class CrossSiteGuard {

        private final Set<String> hosts;

        /// @param hosts names that are expected in `Host`, in small letters; [HttpConfig#ANY_HOST] for any
        CrossSiteGuard(Set<String> hosts) {
            this.hosts = hosts;
        }

        /// Returns the problem with a request, or null.
        ///
        /// @param linkAllowed whether a page of another site may have a link to what is asked for
        @Nullable
        String findProblem(HttpHeaders headers, boolean linkAllowed) {
            String site = headers.get("sec-fetch-site", "none");
            if (!linkAllowed && !site.equals("none") && !site.equals("same-origin")) {
                return "the request comes from a page of another site";
            }
            String host = headers.get(HttpHeaderNames.HOST, "");
            String origin = headers.get(HttpHeaderNames.ORIGIN);
            if (origin != null && !origin.substring(origin.indexOf("://") + 1).equals("//" + host)) {
                return "the Origin is another site";
            }
            return host.isEmpty() || isLocal(name(host)) || isExpected(name(host))
                    ? null
                    : "the Host is '" + host
                            + "'; it takes an IP address, localhost, or a name that the listener's setting"
                            + " hosts has";
        }

        private boolean isExpected(String name) {
            return hosts.contains(HttpConfig.ANY_HOST) || hosts.contains(name.toLowerCase(Locale.ROOT));
        }

        private static String name(String host) {
            if (host.startsWith("[")) {
                return host.substring(1, Math.max(1, host.indexOf(']')));
            }
            int colon = host.indexOf(':');
            return colon < 0 ? host : host.substring(0, colon);
        }

        private static boolean isLocal(String name) {
            return name.toLowerCase(Locale.ROOT).equals("localhost")
                    || NetUtil.isValidIpV4Address(name)
                    || NetUtil.isValidIpV6Address(name);
        }
    }
}

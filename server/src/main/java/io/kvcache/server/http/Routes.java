package io.kvcache.server.http;

import io.kvcache.server.access.AuthResult;
import io.kvcache.server.config.TenantConfig;
import io.kvcache.server.keyspace.Keyspace;
import io.kvcache.server.keyspace.Reach;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpObjectDecoder;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.TooLongHttpHeaderException;
import io.netty.handler.codec.http.TooLongHttpLineException;
import java.util.Set;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Which request is answered by what.
final class Routes {

    /// Names a tenant by its cache salt.
    private static final String SALT = "KVCache-Salt";

    private final HttpSite site;
    private final SameSite sameSite;

    Routes(HttpSite site) {
        this.site = site;
        sameSite = new SameSite(site.door().anonymousTenant() == null ? Set.of(HttpSite.ANY_HOST) : site.hosts());
    }

    /// What answers a request whoever sent it, or null when that matters.
    @Nullable
    Exchange forAnybody(HttpRequest request) {
        if (request.decoderResult().isFailure()) {
            return unreadable(request.decoderResult().cause());
        }
        String foreign = sameSite.refusal(request.headers());
        if (foreign != null) {
            return problem(HttpResponseStatus.FORBIDDEN, foreign);
        }
        Page page = site.pages().get(path(request));
        return page != null && page.open() ? page(request, path(request)) : null;
    }

    private static Exchange unreadable(Throwable cause) {
        return switch (cause) {
            case TooLongHttpLineException _ ->
                problem(
                        HttpResponseStatus.REQUEST_URI_TOO_LONG,
                        "a request's line takes up to " + HttpProtocol.LONGEST_LINE + " bytes");
            case TooLongHttpHeaderException _ ->
                problem(
                        HttpResponseStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
                        "a request's headers take up to " + HttpObjectDecoder.DEFAULT_MAX_HEADER_SIZE + " bytes");
            default -> problem(HttpResponseStatus.BAD_REQUEST, "this is not HTTP/1.1");
        };
    }

    /// What answers a request.
    ///
    /// @param who sent it
    Exchange find(HttpRequest request, AuthResult who) {
        if (who.outcome() == AuthResult.Outcome.THROTTLED) {
            return problem(
                    HttpResponseStatus.TOO_MANY_REQUESTS, "there were too many failed attempts; try again later");
        }
        if (who.tenant() == null) {
            return problem(
                    HttpResponseStatus.UNAUTHORIZED,
                    who.outcome() == AuthResult.Outcome.MISSING
                            ? "say who you are, by Basic or Bearer"
                            : "there is no such user and password");
        }
        String tenant = tenant(request, who.tenant());
        if (tenant == null) {
            return Problem.named(
                            HttpResponseStatus.FORBIDDEN, "unknown-salt", "the salt is of no tenant that you may be")
                    .exchange();
        }
        return find(request, path(request), tenant);
    }

    /// Whose values a request is about, or null when its salt is not of who sent it. As who anybody is that does not
    /// say who he is, one may be whoever's salt he knows.
    private @Nullable String tenant(HttpRequest request, String who) {
        String salt = request.headers().get(SALT);
        if (salt == null) {
            return who;
        }
        String owner = site.labels().get().ownerOfSalt(salt.strip());
        return who.equals(TenantConfig.DEFAULT) || who.equals(owner) ? owner : null;
    }

    private Exchange find(HttpRequest request, String path, String tenant) {
        Reach reach = site.tenants().get(tenant);
        if (path.startsWith(ObjectPath.PREFIX) && reach != null) {
            return object(request, path, reach);
        }
        for (Area area : site.areas()) {
            Exchange found = area.find(request, path, tenant);
            if (found != null) {
                return found;
            }
        }
        return page(request, path);
    }

    private static String path(HttpRequest request) {
        int query = request.uri().indexOf('?');
        return query < 0 ? request.uri() : request.uri().substring(0, query);
    }

    private Exchange page(HttpRequest request, String path) {
        Page page = site.pages().get(path);
        if (page == null) {
            return problem(
                    HttpResponseStatus.NOT_FOUND,
                    "there is no " + path + "; there are "
                            + (site.tenants().isEmpty() ? "" : ObjectPath.PREFIX + "{key}, ")
                            + paths());
        }
        boolean get = request.method().equals(HttpMethod.GET);
        if (!get && !request.method().equals(HttpMethod.HEAD)) {
            return notAllowed(request, "GET, HEAD");
        }
        return (Exchange.Plain) out -> out.page(page, get);
    }

    private String paths() {
        Stream<String> all = Stream.concat(
                site.pages().keySet().stream(), site.areas().stream().flatMap(area -> area.paths().stream()));
        return String.join(", ", all.sorted().toList());
    }

    private static Exchange object(HttpRequest request, String path, Reach reach) {
        byte[] key = ObjectPath.key(path);
        Keyspace keyspace = key == null ? reach.own() : reach.of(key);
        if (key == null || key.length < 1 || key.length > keyspace.bounds().keyBytes()) {
            return problem(
                    HttpResponseStatus.BAD_REQUEST,
                    "a key takes 1 to " + keyspace.bounds().keyBytes() + " bytes, percent-encoded where needed");
        }
        return switch (request.method().name()) {
            case "GET" -> new ObjectRead(keyspace, key, request.headers().get(HttpHeaderNames.RANGE), true);
            case "HEAD" -> new ObjectRead(keyspace, key, request.headers().get(HttpHeaderNames.RANGE), false);
            case "DELETE" ->
                (Exchange.Plain) out -> {
                    if (keyspace.delete(key)) {
                        out.empty(HttpResponseStatus.NO_CONTENT);
                    } else {
                        out.problem(new Problem(HttpResponseStatus.NOT_FOUND, "there is no such object"));
                    }
                };
            case "PUT" -> put(request, key, keyspace);
            default -> notAllowed(request, "GET, HEAD, PUT, DELETE");
        };
    }

    private static Exchange put(HttpRequest request, byte[] key, Keyspace keyspace) {
        long bytes = HttpUtil.getContentLength(request, -1L);
        if (bytes < 0) {
            return problem(HttpResponseStatus.LENGTH_REQUIRED, "a PUT takes a Content-Length");
        }
        if (bytes > keyspace.bounds().valueBytes()) {
            return problem(
                    HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE,
                    "an object of " + bytes + " bytes; it takes 0 to "
                            + keyspace.bounds().valueBytes());
        }
        return new ObjectWrite(keyspace.put(key, bytes));
    }

    private static Exchange notAllowed(HttpRequest request, String allowed) {
        return HttpReplies.notAllowed(request, allowed);
    }

    private static Exchange problem(HttpResponseStatus status, String detail) {
        return new Problem(status, detail).exchange();
    }
}

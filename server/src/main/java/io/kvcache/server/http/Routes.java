package io.kvcache.server.http;

import io.kvcache.server.keyspace.Keyspace;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import java.util.Map;

/// Which request is answered by what.
final class Routes {

    private final Keyspace keyspace;
    private final Map<String, Page> pages;
    private final boolean anyHost;

    Routes(Keyspace keyspace, Map<String, Page> pages, boolean anyHost) {
        this.keyspace = keyspace;
        this.pages = pages;
        this.anyHost = anyHost;
    }

    Exchange find(HttpRequest request) {
        if (request.decoderResult().isFailure()) {
            return problem(HttpResponseStatus.BAD_REQUEST, "this is not HTTP/1.1");
        }
        String foreign = SameSite.refusal(request.headers(), anyHost);
        if (foreign != null) {
            return problem(HttpResponseStatus.FORBIDDEN, foreign);
        }
        int query = request.uri().indexOf('?');
        String path = query < 0 ? request.uri() : request.uri().substring(0, query);
        return path.startsWith(ObjectPath.PREFIX) ? object(request, path) : page(request, path);
    }

    private Exchange page(HttpRequest request, String path) {
        Page page = pages.get(path);
        if (page == null) {
            return problem(
                    HttpResponseStatus.NOT_FOUND,
                    "there is no " + path + "; there are " + ObjectPath.PREFIX + "{key}, "
                            + String.join(", ", pages.keySet().stream().sorted().toList()));
        }
        boolean get = request.method().equals(HttpMethod.GET);
        if (!get && !request.method().equals(HttpMethod.HEAD)) {
            return notAllowed(request, "GET, HEAD");
        }
        return (Exchange.Plain) out -> out.page(page, get);
    }

    private Exchange object(HttpRequest request, String path) {
        byte[] key = ObjectPath.key(path);
        if (key == null || key.length < 1 || key.length > Keyspace.MAX_KEY_BYTES) {
            return problem(
                    HttpResponseStatus.BAD_REQUEST,
                    "a key takes 1 to " + Keyspace.MAX_KEY_BYTES + " bytes, percent-encoded where needed");
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
            case "PUT" -> put(request, key);
            default -> notAllowed(request, "GET, HEAD, PUT, DELETE");
        };
    }

    private Exchange put(HttpRequest request, byte[] key) {
        long bytes = HttpUtil.getContentLength(request, -1L);
        if (bytes < 0) {
            return problem(HttpResponseStatus.LENGTH_REQUIRED, "a PUT takes a Content-Length");
        }
        if (bytes > Keyspace.MAX_VALUE_BYTES) {
            return problem(
                    HttpResponseStatus.REQUEST_ENTITY_TOO_LARGE,
                    "an object of " + bytes + " bytes; it takes 0 to " + Keyspace.MAX_VALUE_BYTES);
        }
        return new ObjectWrite(keyspace.put(key, bytes));
    }

    private static Exchange notAllowed(HttpRequest request, String allowed) {
        return (Exchange.Plain) out -> out.notAllowed(
                new Problem(HttpResponseStatus.METHOD_NOT_ALLOWED, request.method() + " is not one of " + allowed),
                allowed);
    }

    private static Exchange problem(HttpResponseStatus status, String detail) {
        return (Exchange.Plain) out -> out.problem(new Problem(status, detail));
    }
}

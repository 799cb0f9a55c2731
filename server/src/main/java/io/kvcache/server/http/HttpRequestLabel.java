package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpRequest;
import java.util.Locale;
import java.util.Set;

/// What a request is counted as: its method and the first words of its path, as far as there are such.
final class HttpRequestLabel {

    private static final Set<String> METHODS = Set.of("GET", "HEAD", "PUT", "POST", "DELETE");
    private static final Set<String> RESOURCES =
            Set.of("objects", "blocks", "namespaces", "events", "stats", "disks", "kv", "leases");
    private static final String ROOT = "/v1/";
    private static final String MATCH = "/v1/blocks/match";
    private static final String OTHER = "other";

    private HttpRequestLabel() {}

    static String of(HttpRequest request) {
        String method = request.method().name();
        String uri = request.uri();
        if (!METHODS.contains(method)) {
            return OTHER;
        }
        if (!uri.startsWith(ROOT)) {
            return uri.startsWith("/health/") || uri.startsWith("/metrics") ? "get_page" : OTHER;
        }
        String thing = uri.startsWith(MATCH) ? "match" : resourceOf(uri);
        return RESOURCES.contains(thing) || thing.equals("match")
                ? method.toLowerCase(Locale.ROOT) + "_" + thing
                : OTHER;
    }

    private static String resourceOf(String uri) {
        int end = ROOT.length();
        while (end < uri.length() && Character.isLetter(uri.charAt(end))) {
            end++;
        }
        return uri.substring(ROOT.length(), end);
    }
}

package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.util.NetUtil;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// Keeps web pages away from a server that asks nobody who they are.
///
/// A page of another site may send requests here from a user's browser: those carry its `Origin`. Or it may let its own
/// name point here: then the name is in `Host`, where a server on loopback expects a number or localhost.
final class SameSite {

    private SameSite() {}

    /// What is wrong with a request, or null.
    ///
    /// @param anyHost whether names are expected in `Host`
    static @Nullable String refusal(HttpHeaders headers, boolean anyHost) {
        String host = headers.get(HttpHeaderNames.HOST, "");
        String origin = headers.get(HttpHeaderNames.ORIGIN);
        if (origin != null && !origin.substring(origin.indexOf("://") + 1).equals("//" + host)) {
            return "the Origin is another site";
        }
        return anyHost || host.isEmpty() || isHere(name(host))
                ? null
                : "the Host is a name; it takes a number or localhost";
    }

    private static String name(String host) {
        if (host.startsWith("[")) {
            return host.substring(1, Math.max(1, host.indexOf(']')));
        }
        int colon = host.indexOf(':');
        return colon < 0 ? host : host.substring(0, colon);
    }

    private static boolean isHere(String name) {
        return name.toLowerCase(Locale.ROOT).equals("localhost")
                || NetUtil.isValidIpV4Address(name)
                || NetUtil.isValidIpV6Address(name);
    }
}

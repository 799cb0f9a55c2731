package io.kvcache.server.http;

import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.util.NetUtil;
import java.util.Locale;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/// Keeps web pages away from a listener without authentication.
///
/// A page of another site may send requests here from a user's browser: those carry its `Origin`. Or it may let
/// its own name point here: then the name is in `Host`, where a server on loopback expects an IP address
/// or localhost.
final class CrossSiteGuard {

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
                : "the Host is '" + host + "'; it takes an IP address, localhost, or a name that the listener's setting"
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

package io.kvcache.server.http;

import java.util.List;
import java.util.regex.Pattern;

/// The resources below `/v1/` that are for operators: listeners with `pages` serve them, and their requests are not
/// counted among those of clients.
public final class OperatorResources {

    /// First words behind `/v1/`.
    public static final List<String> NAMES = List.of(
            "stats",
            "events",
            "disks",
            "cluster",
            "console",
            "history",
            "live",
            "misses",
            "prefixes",
            "requests",
            "whatif",
            "settings");

    private static final Pattern REQUEST = Pattern.compile("(?:http )?[a-z]+_(?:page|" + String.join("|", NAMES) + ")");

    private OperatorResources() {}

    /// Returns whether a request, `get_stats` or `http get_stats`, is for operators: what is looked at by them is none
    /// of the server's load.
    public static boolean isRequest(String label) {
        return REQUEST.matcher(label).matches();
    }
}

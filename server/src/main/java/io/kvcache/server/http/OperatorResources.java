package io.kvcache.server.http;

import java.util.List;

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

    private OperatorResources() {}
}

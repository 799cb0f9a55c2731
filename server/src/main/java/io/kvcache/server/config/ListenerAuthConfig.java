package io.kvcache.server.config;

import java.util.List;
import org.jspecify.annotations.Nullable;

/// Who may come in at a listener.
///
/// @param tenant whose values are seen there: with `auth` the only tenant that may come, without it the one that
/// everybody is; null for any, or the default one
/// @param auth whether clients have to say who they are
/// @param allowUnauthenticated whether others than this machine may connect although they do not have to
/// @param cidrs the networks that clients may be in; empty for all
/// @param hosts names by which HTTP clients may call a listener that does not ask who they are; `*` for any
public record ListenerAuthConfig(
        @Nullable String tenant, boolean auth, boolean allowUnauthenticated, List<String> cidrs, List<String> hosts) {

    /// Everybody is the default tenant.
    public static final ListenerAuthConfig UNRESTRICTED =
            new ListenerAuthConfig(null, false, false, List.of(), List.of());

    public ListenerAuthConfig {
        cidrs = List.copyOf(cidrs);
        hosts = List.copyOf(hosts);
    }
}

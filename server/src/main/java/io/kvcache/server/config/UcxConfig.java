package io.kvcache.server.config;

import java.util.regex.Pattern;

/// Whether clients may read the store one-sided over UCX. Loads nothing of it.
///
/// @param text `off`, `on` for all transports that UCX has, or their names, as in `tcp` or `rc,tcp`
public record UcxConfig(String text) {

    private static final String OFF = "off";
    private static final String ON = "on";
    private static final Pattern NAMES = Pattern.compile("[a-z0-9_]{1,40}(,[a-z0-9_]{1,40}){0,19}");

    public UcxConfig {
        if (!NAMES.matcher(text).matches()) {
            throw new IllegalArgumentException("transport.ucx is '" + text
                    + "'; it takes off, on, or the names of 1 to 20 transports as UCX has them, as in rc,tcp");
        }
    }

    public static UcxConfig disabled() {
        return new UcxConfig(OFF);
    }

    /// Whether it is to be opened where it is installed.
    public boolean isEnabled() {
        return !text.equals(OFF);
    }

    /// As UCX takes them; empty for all.
    public String transports() {
        return text.equals(ON) ? "" : text;
    }

    /// Looks at it together with what else is served.
    ///
    /// @param listens whether there is an endpoint over TCP, where clients learn of it
    /// @param shares whether memory is shared, which is what they read
    /// @throws IllegalArgumentException when they do not go together
    void validate(boolean listens, boolean shares) {
        if (isEnabled() && !listens) {
            throw new IllegalArgumentException("transport.ucx is " + text + "; it takes transport.listen beside it");
        }
        if (isEnabled() && !shares) {
            throw new IllegalArgumentException("transport.ucx is " + text
                    + ", and no memory is shared with clients; it takes transport.shared_memory with a name beside it");
        }
    }
}

package io.kvcache.server.access;

import io.kvcache.core.spi.Clock;
import io.kvcache.server.config.ListenerConfig.ListenerAuthConfig;
import io.kvcache.server.config.TenantConfig;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;

/// The way in at a listener without authentication.
public final class OpenListener {

    private OpenListener() {}

    /// Takes every client for the default tenant.
    public static ListenerAuth auth(Clock clock) {
        try {
            return new ListenerAuth(
                    ListenerAuthConfig.UNRESTRICTED,
                    List.of(TenantConfig.defaultTenant()),
                    PasswordAuthenticator.withExecutor(Runnable::run, List.of(), clock));
        } catch (IOException impossible) {
            throw new UncheckedIOException(impossible);
        }
    }
}

package io.kvcache.tiers.options;

import io.kvcache.core.memory.Pages;

/// How much memory clients of a shared store may have to write into.
///
/// @param clientBytes of one client at most, a page to 16 GiB; 0 for none
/// @param totalBytes of all clients together, at least as much
public record StagingLimits(long clientBytes, long totalBytes) {

    private static final long MAX_BYTES = 16L << 30;

    /// Enough for one client to have the largest usual blocks on their way on two connections; four clients of
    /// that kind.
    public static final StagingLimits DEFAULTS = new StagingLimits(64 << 20, 256 << 20);

    /// Clients send what they put.
    public static final StagingLimits NONE = new StagingLimits(0, 0);

    public StagingLimits {
        boolean none = clientBytes == 0 && totalBytes == 0;
        boolean some = clientBytes >= Pages.BYTES && clientBytes <= MAX_BYTES && totalBytes >= clientBytes;
        if (!none && !some) {
            throw new IllegalArgumentException(
                    ("staging memory of %s bytes a client and %s in all; allowed: %s to %s a client and at least as much in"
                                    + " all, or 0 and 0")
                            .formatted(clientBytes, totalBytes, Pages.BYTES, MAX_BYTES));
        }
    }
}

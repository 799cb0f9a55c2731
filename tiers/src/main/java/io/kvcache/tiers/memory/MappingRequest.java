package io.kvcache.tiers.memory;

import io.kvcache.tiers.os.ByteSizeFormat;
import io.kvcache.tiers.os.Errno;
import java.util.regex.Pattern;

/// A request for memory: the purpose and the size, for the mapping and for the error when it fails.
record MappingRequest(String purpose, long bytes) {

    private static final Pattern ONE_WORD = Pattern.compile("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}");

    MappingRequest {
        if (!ONE_WORD.matcher(purpose).matches()) {
            throw new IllegalArgumentException(
                    "purpose must be one word of letters, digits, '_', '.', '-', is '%s'".formatted(purpose));
        }
        if (bytes < 1) {
            throw new IllegalArgumentException("bytes for '%s' must be at least 1, is %s".formatted(purpose, bytes));
        }
    }

    /// The failure of a call that returned `result`.
    MemoryReservationException callFailed(String call, long result) {
        return failed("%s gave %s".formatted(call, Errno.explain(result)));
    }

    MemoryReservationException failed(String cause) {
        return new MemoryReservationException("Cannot reserve %s of host memory for '%s': %s"
                .formatted(ByteSizeFormat.format(bytes), purpose, cause));
    }
}

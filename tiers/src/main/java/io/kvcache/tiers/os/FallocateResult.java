package io.kvcache.tiers.os;

/// What came of reserving space for a file.
///
/// @param reservedBytes how far it got, from the start of the file
/// @param result 0 when all is reserved, otherwise the negated errno of the call that failed
public record FallocateResult(long reservedBytes, long result) {

    /// A signal makes fallocate give all back, so it goes in steps (of some 20 ms) that each get done.
    private static final long STEP_BYTES = 64L << 20;

    private static final int MAX_INTERRUPTIONS = 100;

    /// Reserves the first `bytes` of a file, so that running out of space is an error now, and not later a write
    /// that fails or a signal that kills.
    ///
    /// @param mode of fallocate: 0, or FALLOC_FL_KEEP_SIZE (1)
    public static FallocateResult reserve(Libc libc, int descriptor, int mode, long bytes) {
        int interruptions = 0;
        long reserved = 0;
        while (reserved < bytes) {
            long step = Math.min(STEP_BYTES, bytes - reserved);
            long result = libc.call(LibcFunction.FALLOCATE, descriptor, mode, reserved, step);
            if (result == 0) {
                reserved += step;
            } else if (!Errno.EINTR.isResult(result) || ++interruptions > MAX_INTERRUPTIONS) {
                return new FallocateResult(reserved, result);
            }
        }
        return new FallocateResult(reserved, 0);
    }
}

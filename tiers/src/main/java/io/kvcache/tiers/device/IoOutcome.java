package io.kvcache.tiers.device;

import io.kvcache.tiers.os.Errno;

/// Outcome of an operation.
///
/// @param cause the name of the errno, `EIO`, or `end of file` where the medium is shorter than it was; empty
///     when done
public record IoOutcome(Kind kind, String cause) {

    /// Meaning of an outcome for the caller.
    public enum Kind {
        /// All of it was done.
        DONE,
        /// There is no space, no quota, or no larger file allowed for it; the device is sound. A write may have been
        /// done in part.
        NO_SPACE,
        /// The device does not know the operation, and will not tomorrow.
        UNSUPPORTED,
        /// The device could not. Nothing is known of a write, nor of what a failed sync should have made
        /// durable.
        FAILED
    }

    /// The outcome of what went well.
    public static final IoOutcome DONE = new IoOutcome(Kind.DONE, "");

    /// Outcome of a read past the end of the medium.
    static final IoOutcome END_OF_FILE = new IoOutcome(Kind.FAILED, "end of file");

    /// The outcome for an error of the operating system.
    public static IoOutcome of(Errno errno) {
        return ofResult(-errno.number());
    }

    /// The outcome for a result of the kernel below zero, which is a negated errno.
    static IoOutcome ofResult(long result) {
        return new IoOutcome(kindOf(result), Errno.nameOf(result));
    }

    private static Kind kindOf(long result) {
        if (Errno.ENOSPC.isResult(result) || Errno.EDQUOT.isResult(result) || Errno.EFBIG.isResult(result)) {
            return Kind.NO_SPACE;
        }
        return Errno.ENOSYS.isResult(result) || Errno.EOPNOTSUPP.isResult(result) ? Kind.UNSUPPORTED : Kind.FAILED;
    }

    /// Returns whether all of it was done.
    public boolean isDone() {
        return kind == Kind.DONE;
    }
}

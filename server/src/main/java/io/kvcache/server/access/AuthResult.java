package io.kvcache.server.access;

import org.jspecify.annotations.Nullable;

/// What came of a log-in.
///
/// @param tenant who it is; null unless the outcome is [Outcome#OK]
public record AuthResult(Outcome outcome, @Nullable String tenant) {

    /// Of a client that did not say who it is.
    public static final AuthResult MISSING = new AuthResult(Outcome.MISSING, null);

    static final AuthResult DENIED = new AuthResult(Outcome.DENIED, null);
    static final AuthResult THROTTLED = new AuthResult(Outcome.THROTTLED, null);

    /// The kinds of it.
    public enum Outcome {
        /// It is somebody.
        OK,
        /// It was not said, or not so that it can be understood.
        MISSING,
        /// There is no such user, or it is not his password, or he may not come in here.
        DENIED,
        /// There were too many wrong ones lately: nothing was looked at.
        THROTTLED
    }
}

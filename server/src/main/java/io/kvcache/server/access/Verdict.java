package io.kvcache.server.access;

import org.jspecify.annotations.Nullable;

/// What came of a log-in.
///
/// @param tenant who it is; null unless the outcome is [Outcome#IN]
public record Verdict(Outcome outcome, @Nullable String tenant) {

    /// Of a client that did not say who it is.
    public static final Verdict UNSAID = new Verdict(Outcome.UNSAID, null);

    static final Verdict WRONG = new Verdict(Outcome.WRONG, null);
    static final Verdict LATER = new Verdict(Outcome.LATER, null);

    /// The kinds of it.
    public enum Outcome {
        /// It is somebody.
        IN,
        /// It was not said, or not so that it can be understood.
        UNSAID,
        /// There is no such user, or it is not his password, or he may not come in here.
        WRONG,
        /// There were too many wrong ones lately: nothing was looked at.
        LATER
    }
}

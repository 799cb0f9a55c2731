package io.kvcache.tiers.disk;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/// Which state a log is in, and why. It only ever gets worse: a log comes back by being opened again.
final class LogHealth {

    private static final Logger LOG = System.getLogger(DiskLog.class.getName());

    private LogState state = LogState.OPENING;
    private String cause = "";

    LogState state() {
        return state;
    }

    String cause() {
        return cause;
    }

    /// Whether anything new may be written.
    boolean canWrite() {
        return state == LogState.SERVING;
    }

    /// Whether blocks may be read.
    boolean canRead() {
        return state == LogState.SERVING || state == LogState.READ_ONLY;
    }

    /// Whether writing has ended for good.
    boolean isWritingHalted() {
        return state != LogState.SERVING && state != LogState.OPENING;
    }

    boolean isFailed() {
        return state == LogState.FAILED;
    }

    void markServing() {
        if (state == LogState.OPENING) {
            transitionTo(LogState.SERVING, "");
        }
    }

    void markRefused(String why) {
        transitionTo(LogState.REFUSED, why);
    }

    /// Ends writing; an opening that cannot write fails.
    void stopWriting(String why) {
        if (state == LogState.SERVING) {
            transitionTo(LogState.READ_ONLY, why);
        } else if (state == LogState.OPENING) {
            markFailed(why);
        }
    }

    void markFailed(String why) {
        if (state != LogState.FAILED && state != LogState.STOPPED) {
            transitionTo(LogState.FAILED, why);
        }
    }

    void markStopped() {
        if (!state.equals(LogState.FAILED)) {
            transitionTo(LogState.STOPPED, "");
        }
    }

    private void transitionTo(LogState next, String why) {
        Level level = why.isEmpty() ? Level.DEBUG : Level.WARNING;
        LOG.log(level, "A log on disk is {0} after {1}: {2}", next, state, why.isEmpty() ? "as asked" : why);
        state = next;
        cause = why;
    }
}

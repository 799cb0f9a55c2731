package io.kvcache.tiers.disk;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/// Which state a log is in, and why. It only ever gets worse: a log comes back by being opened again.
final class Condition {

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
    boolean writes() {
        return state == LogState.SERVING;
    }

    /// Whether blocks may be read.
    boolean reads() {
        return state == LogState.SERVING || state == LogState.READ_ONLY;
    }

    /// Whether writing has ended for good.
    boolean halted() {
        return state != LogState.SERVING && state != LogState.OPENING;
    }

    boolean failed() {
        return state == LogState.FAILED;
    }

    void serve() {
        if (state == LogState.OPENING) {
            become(LogState.SERVING, "");
        }
    }

    void refuse(String why) {
        become(LogState.REFUSED, why);
    }

    /// Ends writing; an opening that cannot write fails.
    void stopWriting(String why) {
        if (state == LogState.SERVING) {
            become(LogState.READ_ONLY, why);
        } else if (state == LogState.OPENING) {
            fail(why);
        }
    }

    void fail(String why) {
        if (state != LogState.FAILED && state != LogState.STOPPED) {
            become(LogState.FAILED, why);
        }
    }

    void stop() {
        if (!state.equals(LogState.FAILED)) {
            become(LogState.STOPPED, "");
        }
    }

    private void become(LogState next, String why) {
        Level level = why.isEmpty() ? Level.DEBUG : Level.WARNING;
        LOG.log(level, "A log on disk is {0} after {1}: {2}", next, state, why.isEmpty() ? "as asked" : why);
        state = next;
        cause = why;
    }
}

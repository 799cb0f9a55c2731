package io.kvcache.tiers.disk;

import io.kvcache.core.tier.TierState;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;

/// Which state a log is in, and why. It only ever gets worse: a log comes back by being opened again.
final class LogHealth {

    private static final Logger LOG = System.getLogger(DiskLog.class.getName());

    private TierState state = TierState.OPENING;
    private String cause = "";

    TierState state() {
        return state;
    }

    String cause() {
        return cause;
    }

    /// Whether anything new may be written.
    boolean canWrite() {
        return state == TierState.SERVING;
    }

    /// Whether blocks may be read.
    boolean canRead() {
        return state == TierState.SERVING || state == TierState.READ_ONLY;
    }

    /// Whether writing has ended for good.
    boolean isWritingHalted() {
        return state != TierState.SERVING && state != TierState.OPENING;
    }

    boolean isFailed() {
        return state == TierState.FAILED;
    }

    void markServing() {
        if (state == TierState.OPENING) {
            transitionTo(TierState.SERVING, "");
        }
    }

    void markRefused(String why) {
        transitionTo(TierState.REFUSED, why);
    }

    /// Ends writing; an opening that cannot write fails.
    void stopWriting(String why) {
        if (state == TierState.SERVING) {
            transitionTo(TierState.READ_ONLY, why);
        } else if (state == TierState.OPENING) {
            markFailed(why);
        }
    }

    void markFailed(String why) {
        if (state != TierState.FAILED && state != TierState.STOPPED) {
            transitionTo(TierState.FAILED, why);
        }
    }

    void markStopped() {
        if (!state.equals(TierState.FAILED)) {
            transitionTo(TierState.STOPPED, "");
        }
    }

    private void transitionTo(TierState next, String why) {
        Level level = why.isEmpty() ? Level.DEBUG : Level.WARNING;
        LOG.log(level, "A log on disk is {0} after {1}: {2}", next, state, why.isEmpty() ? "as asked" : why);
        state = next;
        cause = why;
    }
}

package io.kvcache.bench.cli;

import io.kvcache.bench.replay.BlockCountingRule;
import io.kvcache.bench.replay.ReplayComparison;
import io.kvcache.bench.trace.Trace;

/// How the outcomes of a replay are shown.
sealed interface ReplayReport permits ReplayTableReport, ReplayJsonReport {

    /// The outcomes that follow are of this trace by this rule.
    void beginTrace(Trace trace, BlockCountingRule rule);

    /// One cache at one capacity.
    void addOutcome(ReplayComparison.Outcome outcome);

    /// No more outcomes of this trace and rule.
    void finish();
}

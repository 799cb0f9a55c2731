package io.kvcache.bench.cli;

import io.kvcache.bench.replay.ReplayComparison;
import io.kvcache.bench.replay.ReplayRule;
import io.kvcache.bench.trace.Trace;

/// How the outcomes of a replay are shown.
sealed interface ReplayReport permits ReplayTable, ReplayLines {

    /// The outcomes that follow are of this trace by this rule.
    void begin(Trace trace, ReplayRule rule);

    /// One cache at one capacity.
    void add(ReplayComparison.Outcome outcome);

    /// No more outcomes of this trace and rule.
    void end();
}

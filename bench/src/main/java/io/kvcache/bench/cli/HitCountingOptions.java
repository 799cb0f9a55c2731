package io.kvcache.bench.cli;

import io.kvcache.bench.replay.BlockCountingRule;
import picocli.CommandLine.Option;

/// The options that say which blocks of a trace count.
final class HitCountingOptions {

    @Option(
            names = "--rule",
            paramLabel = "RULE",
            defaultValue = "reference",
            description = "reference: every id is a block. full-blocks: as the store does, never a partial block."
                    + " Default: ${DEFAULT-VALUE}.")
    private String rule = "";

    @Option(
            names = "--warmup",
            paramLabel = "N",
            description = "Leading requests that are replayed but not counted. Default: 0.")
    private int warmup;

    /// @throws IllegalArgumentException that says what may be
    BlockCountingRule rule() {
        return ReplayOptions.parseRule(rule);
    }

    /// @throws IllegalArgumentException when it is below 0
    int warmup() {
        ReplayOptions.checkWarmup(warmup);
        return warmup;
    }
}

package io.kvcache.bench.lab;

import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceRequest;

/// Gives an engine a trace's requests with what each of them has found.
final class EngineFeed {

    private final Trace trace;
    private final int warmup;
    private final EngineSimulator engine;

    /// @param warmup leading requests that the engine does not get
    EngineFeed(Trace trace, EngineHardware hardware, int warmup) {
        this.trace = trace;
        this.warmup = warmup;
        engine = new EngineSimulator(hardware);
    }

    /// One request, not before the one before it. Of a prompt all tokens but one can be found,
    /// since the last has to be computed.
    ///
    /// @param hostBlocks leading blocks in host memory
    /// @param blocks in host memory and on disk
    void serve(int number, int hostBlocks, int blocks) {
        if (number < warmup) {
            return;
        }
        TraceRequest request = trace.requests().get(number);
        long most = request.inputTokens() - 1L;
        long host = Math.min(most, (long) hostBlocks * trace.blockTokens());
        long all = Math.min(most, (long) blocks * trace.blockTokens());
        engine.serve(
                new EngineSimulator.Prompt(request.timestampMillis() / 1000.0, request.inputTokens()),
                new EngineSimulator.CachedTokens(host, all - host));
    }

    /// What became of all.
    EngineSimulator.Summary summary() {
        return engine.summary();
    }
}

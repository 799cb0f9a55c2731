package io.kvcache.bench.cli;

import io.kvcache.bench.trace.TraceSource;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/// The option that names several traces, for commands of the laboratory that compare on all of them.
final class TraceListOption {

    @Option(
            names = "--trace",
            paramLabel = "TRACE",
            split = ",",
            defaultValue = "conversation,synthetic",
            description = "Traces: a file in the format of Mooncake, Qwen-Bailian or token ids, or"
                    + " conversation, synthetic, generated[:SEED], popular[:SEED] or hostile[:SEED]."
                    + " Default: ${DEFAULT-VALUE}.")
    private List<String> names = new ArrayList<>();

    List<String> traceNames() {
        return names;
    }

    /// What is named; [TraceOption#loadTrace] reads one.
    ///
    /// @throws IllegalArgumentException that says what may be
    List<TraceSource> traceSources() {
        return names.stream().map(TraceSource::parse).toList();
    }
}

package io.kvcache.bench.cli;

import io.kvcache.bench.trace.TraceSource;
import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/// The option that names several traces, for commands of the laboratory that compare on all of them.
final class TracesOption {

    @Option(
            names = "--trace",
            paramLabel = "TRACE",
            split = ",",
            defaultValue = "conversation,synthetic",
            description = "Traces: a file in the format of Mooncake, Qwen-Bailian or token ids, or"
                    + " conversation, synthetic, generated[:SEED], popular[:SEED] or hostile[:SEED]."
                    + " Default: ${DEFAULT-VALUE}.")
    private List<String> names = new ArrayList<>();

    List<String> names() {
        return names;
    }

    /// What is named; [TraceOption#load] reads one.
    ///
    /// @throws IllegalArgumentException that says what may be
    List<TraceSource> sources() {
        return names.stream().map(TraceSource::parse).toList();
    }
}

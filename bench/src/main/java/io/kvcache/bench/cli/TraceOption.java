package io.kvcache.bench.cli;

import io.kvcache.bench.trace.TraceReader.MalformedLine;
import io.kvcache.bench.trace.Trace;
import io.kvcache.bench.trace.TraceReader;
import io.kvcache.bench.trace.TraceSource;
import java.io.IOException;
import java.io.PrintWriter;
import picocli.CommandLine.Option;

/// The option that names one trace, for commands that replay it.
final class TraceOption {

    @Option(
            names = "--trace",
            paramLabel = "TRACE",
            defaultValue = "conversation",
            description = "A file in the format of Mooncake, Qwen-Bailian or token ids, or"
                    + " conversation, synthetic, generated[:SEED], popular[:SEED] or hostile[:SEED]."
                    + " Default: ${DEFAULT-VALUE}.")
    private String name = "";

    /// What is named.
    ///
    /// @throws IllegalArgumentException that says what may be
    TraceSource traceSource() {
        return TraceSource.parse(name);
    }

    /// Reads it; a line that is no request is an error.
    ///
    /// @param errors told once of what the trace lacks
    static Trace loadTrace(TraceSource source, PrintWriter errors) throws IOException {
        Trace read = source.load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}));
        read.partialBlockRemark().ifPresent(remark -> errors.println("kvcache: " + remark));
        errors.flush();
        return read;
    }
}

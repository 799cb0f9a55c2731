package io.kvcache.bench.cli;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Option;

/// The option that names capacities as shares of what a trace has, for commands of the laboratory.
final class CapacitySharesOption {

    @Option(
            names = "--share",
            paramLabel = "PERCENT",
            split = ",",
            defaultValue = "0.5,1.5,3,6,11,30",
            description = "Capacities in percent of the trace's distinct blocks. Default: ${DEFAULT-VALUE}.")
    private List<Double> percents = new ArrayList<>();

    /// The capacities, each above 0 to 1 of the trace's distinct blocks.
    ///
    /// @throws IllegalArgumentException that says what may be
    List<Double> shares() {
        return percents.stream().map(ReplayOptions::parseShare).toList();
    }
}

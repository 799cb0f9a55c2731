package io.kvcache.bench.cli;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.kvcache.bench.suite.BenchResult;
import tools.jackson.databind.json.JsonMapper;

/// The fields of a line of `bench --json`. Their names are what programs rely on.
///
/// @param path only where bytes travelled through a device
record BenchResultJson(
        String name,
        double value,
        String unit,
        String against,
        double againstValue,
        double ratio,
        String budget,
        boolean ok,
        int runs,
        @JsonInclude(JsonInclude.Include.NON_EMPTY) String path) {

    private static final JsonMapper JSON = JsonMapper.builder().build();

    static BenchResultJson of(BenchResult benchResult) {
        return new BenchResultJson(
                benchResult.spec().name(),
                benchResult.value(),
                benchResult.spec().unit(),
                benchResult.spec().reference().name(),
                benchResult.referenceValue(),
                benchResult.ratio(),
                benchResult.spec().threshold().describe(),
                benchResult.isWithinThreshold(),
                benchResult.runs(),
                benchResult.path());
    }

    String toJson() {
        return JSON.writeValueAsString(this);
    }
}

package io.kvcache.bench.cli;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.kvcache.bench.suite.Answer;
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

    static BenchResultJson of(Answer benchResult) {
        return new BenchResultJson(
                benchResult.question().name(),
                benchResult.value(),
                benchResult.question().unit(),
                benchResult.question().against().name(),
                benchResult.againstValue(),
                benchResult.ratio(),
                benchResult.question().budget().describe(),
                benchResult.ok(),
                benchResult.runs(),
                benchResult.path());
    }

    String toJson() {
        return JSON.writeValueAsString(this);
    }
}

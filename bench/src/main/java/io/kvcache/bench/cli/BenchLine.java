package io.kvcache.bench.cli;

import com.fasterxml.jackson.annotation.JsonInclude;
import io.kvcache.bench.suite.Answer;
import tools.jackson.databind.json.JsonMapper;

/// The fields of a line of `bench --json`. Their names are what programs rely on.
///
/// @param path only where bytes travelled through a device
record BenchLine(
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

    static BenchLine of(Answer answer) {
        return new BenchLine(
                answer.question().name(),
                answer.value(),
                answer.question().unit(),
                answer.question().against().name(),
                answer.againstValue(),
                answer.ratio(),
                answer.question().budget().describe(),
                answer.ok(),
                answer.runs(),
                answer.path());
    }

    String toJson() {
        return JSON.writeValueAsString(this);
    }
}

package io.kvcache.bench.trace;

/// Mooncake's format: `timestamp` (milliseconds), `input_length`, `output_length` and `hash_ids`, an id
/// for each 512 tokens, prefix-chained, and one for what is left, or none: full blocks only is a legal way to publish.
///
/// Source of the format and of two traces: the repository kvcache-ai/Mooncake, folder
/// FAST25-release/traces.
final class MooncakeFormat implements TraceFormat {

    @Override
    public int blockTokens() {
        return Trace.BLOCK_TOKENS;
    }

    @Override
    public TraceRequest parse(JsonLineFields line) {
        TraceRequest request = new TraceRequest(
                line.wholeNumber("timestamp", Long.MAX_VALUE),
                line.countOf("input_length"),
                line.countOf("output_length"),
                line.wholeNumbers("hash_ids", "hash id"));
        request.requireBlocks(Trace.BLOCK_TOKENS);
        return request;
    }
}

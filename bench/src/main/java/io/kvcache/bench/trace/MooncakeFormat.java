package io.kvcache.bench.trace;

/// Mooncake's format: `timestamp` (milliseconds), `input_length`, `output_length` and `hash_ids`, an id
/// for each 512 tokens, prefix-chained, and one for what is left.
///
/// Source of the format and of two traces: the repository kvcache-ai/Mooncake, folder
/// FAST25-release/traces.
final class MooncakeFormat implements TraceFormat {

    @Override
    public int blockTokens() {
        return Trace.BLOCK_TOKENS;
    }

    @Override
    public TraceRequest parse(LineFields line) {
        TraceRequest request = new TraceRequest(
                line.whole("timestamp", Long.MAX_VALUE),
                line.count("input_length"),
                line.count("output_length"),
                line.numbers("hash_ids", "hash id"));
        int blocks = Math.ceilDiv(request.inputTokens(), Trace.BLOCK_TOKENS);
        if (request.hashIds().length != blocks) {
            throw new IllegalArgumentException("number of hash_ids is " + request.hashIds().length + ", must be "
                    + blocks + " for an input_length of " + request.inputTokens());
        }
        return request;
    }
}

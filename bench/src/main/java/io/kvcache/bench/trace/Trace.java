package io.kvcache.bench.trace;

import io.kvcache.core.identity.ModelPreset;
import java.util.Arrays;
import java.util.List;

/// A named sequence of requests, in the order of their arrival.
public record Trace(String name, List<TraceRequest> requests) {

    /// Tokens a block, as in Mooncake's traces.
    public static final int BLOCK_TOKENS = 512;

    /// Copies the list.
    public Trace {
        requests = List.copyOf(requests);
    }

    /// Sums over all requests.
    ///
    /// @param blockAccesses ids in all requests
    /// @param distinctBlocks different ids
    public record Totals(int requests, long blockAccesses, long distinctBlocks, long inputTokens, long outputTokens) {}

    /// Computes the sums; takes a pass over all ids.
    public Totals totals() {
        return new Totals(
                requests.size(),
                requests.stream().mapToLong(request -> request.hashIds().length).sum(),
                requests.stream()
                        .flatMapToLong(request -> Arrays.stream(request.hashIds()))
                        .distinct()
                        .count(),
                requests.stream().mapToLong(TraceRequest::inputTokens).sum(),
                requests.stream().mapToLong(TraceRequest::outputTokens).sum());
    }

    /// Bytes of one block of a model's KV.
    public static long blockBytes(ModelPreset model) {
        return model.kvBytesPerToken() * BLOCK_TOKENS;
    }

    /// The first requests only.
    public Trace first(int count) {
        return new Trace(name, requests.subList(0, Math.min(count, requests.size())));
    }
}

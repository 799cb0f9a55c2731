package io.kvcache.planner.trace;

import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.stream.Stream;

/// A named sequence of requests, in the order of their arrival.
///
/// @param blockTokens tokens of a block
public record Trace(String name, int blockTokens, List<TraceRequest> requests) {

    /// Tokens a block, as in Mooncake's traces and those that are made up.
    public static final int BLOCK_TOKENS = 512;

    /// Copies the list and checks that the requests have ids for their blocks.
    public Trace {
        requests = List.copyOf(requests);
        requests.forEach(request -> request.requireBlocks(blockTokens));
    }

    /// With blocks of [#BLOCK_TOKENS] tokens.
    public Trace(String name, List<TraceRequest> requests) {
        this(name, BLOCK_TOKENS, requests);
    }

    /// Sums over all requests.
    ///
    /// @param blockTokens tokens of a block
    /// @param blockAccesses ids in all requests
    /// @param distinctBlocks different ids
    public record Totals(
            int blockTokens,
            int requests,
            long blockAccesses,
            long distinctBlocks,
            long inputTokens,
            long outputTokens) {}

    /// Computes the sums; takes a pass over all ids.
    public Totals totals() {
        return new Totals(
                blockTokens,
                requests.size(),
                requests.stream().mapToLong(request -> request.hashIds().length).sum(),
                requests.stream()
                        .flatMapToLong(request -> Arrays.stream(request.hashIds()))
                        .distinct()
                        .count(),
                requests.stream().mapToLong(TraceRequest::inputTokens).sum(),
                requests.stream().mapToLong(TraceRequest::outputTokens).sum());
    }

    /// Returns a remark on prompts whose last, partial block has no id; empty if all have one.
    public Optional<String> partialBlockRemark() {
        long tail = requests.stream()
                .mapToLong(request -> request.inputTokens() - (long) request.hashIds().length * blockTokens)
                .filter(tokens -> tokens > 0)
                .sum();
        return tail == 0
                ? Optional.empty()
                : Optional.of(String.format(
                        Locale.ROOT,
                        "%s has ids of full blocks only: %,d of %,d prompt tokens lie behind them and count as never"
                                + " cached",
                        name,
                        tail,
                        totals().inputTokens()));
    }

    /// Returns whether the trace has arrival times. Several arrivals at one time and none later do not count.
    public boolean hasTimestamps() {
        return requests.size() == 1
                || requests.getLast().timestampMillis() > requests.getFirst().timestampMillis();
    }

    /// Minutes from the first request to the last.
    public double spanMinutes() {
        return (requests.getLast().timestampMillis() - requests.getFirst().timestampMillis()) / 60e3;
    }

    /// Bytes of one block of KV.
    public long blockBytes(long bytesPerToken) {
        return bytesPerToken * blockTokens;
    }

    /// The requests of this trace and of another one by their time, until the first of the two ends. They share no
    /// block.
    ///
    /// @param other with blocks of the same size
    Trace mixedWith(Trace other) {
        long end = Math.min(
                requests.getLast().timestampMillis(), other.requests.getLast().timestampMillis());
        return new Trace(
                name,
                blockTokens,
                Stream.concat(
                                requests.stream().map(request -> renumbered(request, 0)),
                                other.requests.stream().map(request -> renumbered(request, 1)))
                        .filter(request -> request.timestampMillis() <= end)
                        .sorted(Comparator.comparingLong(TraceRequest::timestampMillis))
                        .toList());
    }

    private static TraceRequest renumbered(TraceRequest request, int side) {
        return new TraceRequest(
                request.timestampMillis(),
                request.inputTokens(),
                request.outputTokens(),
                Arrays.stream(request.hashIds()).map(id -> 2 * id + side).toArray(),
                2 * request.session() + side);
    }

    /// The same requests with blocks of another size: all lengths are scaled alike, and blocks stay equal or
    /// different.
    ///
    /// @param tokens of a block, 1 and up
    /// @param maxInputTokens of a prompt; longer ones lose their end
    public Trace scaledTo(int tokens, int maxInputTokens) {
        return new Trace(
                name,
                tokens,
                requests.stream()
                        .map(request -> request.scaled(blockTokens, tokens, maxInputTokens))
                        .toList());
    }

    /// The same requests at other times.
    ///
    /// @param factor of the speed: above 1, requests come sooner after each other
    public Trace withSpeed(double factor) {
        return new Trace(
                name,
                blockTokens,
                requests.stream()
                        .map(request -> request.at(Math.round(request.timestampMillis() / factor)))
                        .toList());
    }

    /// The first requests only.
    public Trace firstRequests(int count) {
        return new Trace(name, blockTokens, requests.subList(0, Math.min(count, requests.size())));
    }
}

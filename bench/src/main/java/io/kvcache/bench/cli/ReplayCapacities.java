package io.kvcache.bench.cli;

import io.kvcache.core.identity.ModelPreset;
import io.kvcache.server.cli.ByteSizeText;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/// Capacities as they were asked for.
///
/// @param counts in blocks
/// @param sizes in bytes
/// @param model whose KV the bytes are
record ReplayCapacities(List<Integer> counts, List<ByteSizeText> sizes, Optional<ModelPreset> model) {

    private static final List<Integer> DEFAULT_BLOCKS = List.of(1000, 5000, 10_000, 20_000, 50_000);

    /// @throws IllegalArgumentException that names the option, and what may be
    static ReplayCapacities parse(List<Integer> counts, List<String> sizes, Optional<ModelPreset> model) {
        counts.stream().filter(count -> count < 1).findFirst().ifPresent(count -> {
            throw ReplayOptions.invalidOption("--blocks", String.valueOf(count), "at least 1");
        });
        List<Integer> blocks = counts.isEmpty() && sizes.isEmpty() ? DEFAULT_BLOCKS : counts;
        return new ReplayCapacities(
                blocks, sizes.stream().map(ByteSizeText::parse).toList(), model);
    }

    /// All in blocks of so many tokens.
    ///
    /// @throws IllegalArgumentException when a size is less than a block, or more than can be counted
    List<Integer> blocks(int blockTokens) {
        Stream<Integer> fromBytes = model.stream()
                .flatMap(size ->
                        sizes.stream().map(bytes -> blocks(bytes, size, size.kvBytesPerToken() * blockTokens)));
        return Stream.concat(counts.stream(), fromBytes).toList();
    }

    private static int blocks(ByteSizeText capacity, ModelPreset model, long blockBytes) {
        long blocks = capacity.bytes() / blockBytes;
        if (blocks < 1 || blocks > Integer.MAX_VALUE) {
            throw ReplayOptions.invalidOption(
                    "--capacity",
                    capacity.toString(),
                    "1 to 2^31 - 1 blocks of " + new ByteSizeText(blockBytes) + " each for " + model.label());
        }
        return (int) blocks;
    }
}

package io.kvcache.planner.cli;

import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.planner.cli.RowPrinter.OutputFormat;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.store.TierReplay;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.disk.DiskGeometry;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/// The options of `replay`.
///
/// @param traces to replay: one, or one of each seed
record ReplayOptions(
        List<TraceSource> traces,
        List<SimulatedCache> replays,
        ReplayCapacities capacities,
        Optional<ModelProfile> model,
        List<BlockCountingRule> rules,
        MalformedLine.Handling malformed,
        OutputFormat format) {

    /// Those of the caches that are policies of the store.
    List<PolicyReplay> storePolicies() {
        return replays.stream()
                .filter(PolicyReplay.class::isInstance)
                .map(PolicyReplay.class::cast)
                .toList();
    }

    /// The same with the default capacities chosen for a trace of so many distinct blocks, unless they are
    /// chosen yet.
    ReplayOptions forTraceOf(long distinctBlocks) {
        return new ReplayOptions(
                traces, replays, capacities.forTraceOf(distinctBlocks), model, rules, malformed, format);
    }

    /// Capacities as they were asked for.
    ///
    /// @param counts in blocks
    /// @param sizes in bytes
    /// @param model whose KV the bytes are
    /// @param byDefault whether nothing was asked for
    record ReplayCapacities(
            List<Integer> counts, List<ByteSizeText> sizes, Optional<ModelProfile> model, boolean byDefault) {

        private static final List<Integer> DEFAULT_BLOCKS = List.of(1000, 5000, 10_000, 20_000, 50_000);

        /// @throws IllegalArgumentException that names the option, and what may be
        static ReplayCapacities parse(List<Integer> counts, List<String> sizes, Optional<ModelProfile> model) {
            counts.stream().filter(count -> count < 1).findFirst().ifPresent(count -> {
                throw PlanningOptions.invalidOption("--blocks", String.valueOf(count), "at least 1");
            });
            boolean byDefault = counts.isEmpty() && sizes.isEmpty();
            return new ReplayCapacities(
                    byDefault ? DEFAULT_BLOCKS : counts,
                    sizes.stream().map(ByteSizeText::parse).toList(),
                    model,
                    byDefault);
        }

        /// Of the default capacities those below a trace's distinct blocks and the next one, which holds them all: what
        /// is larger finds the same.
        ReplayCapacities forTraceOf(long distinctBlocks) {
            if (!byDefault) {
                return this;
            }
            long smaller =
                    counts.stream().filter(count -> count < distinctBlocks).count();
            return new ReplayCapacities(counts.stream().limit(smaller + 1).toList(), sizes, model, false);
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

        private static int blocks(ByteSizeText capacity, ModelProfile model, long blockBytes) {
            long blocks = capacity.bytes() / blockBytes;
            if (blocks < 1 || blocks > Integer.MAX_VALUE) {
                throw PlanningOptions.invalidOption(
                        "--capacity",
                        capacity.toString(),
                        "1 to 2^31 - 1 blocks of " + new ByteSizeText(blockBytes) + " each for " + model.label());
            }
            return (int) blocks;
        }
    }

    /// The disk of `replay --disk DIR:SIZE`, and which blocks are written to it.
    ///
    /// @param size a number of blocks that may be alive, as `20000 blocks`, or of bytes of the file
    record ReplayDiskOption(Path directory, String size, List<AdmissionKind> admissions) {

        private static final String USAGE =
                "DIR:20000blocks (alive, the reserve comes on top) or DIR:SIZE (of the file)";
        private static final Pattern BLOCKS = Pattern.compile("([1-9]\\d{0,8}) ?blocks");

        /// Blocks that are small enough to replay quickly, and not so small that tables count.
        static final ByteSizeText DEFAULT_BLOCK = new ByteSizeText(64 << 10);

        /// Understands the options.
        ///
        /// @throws IllegalArgumentException that names the option's value and what it may be
        static ReplayDiskOption parse(String disk, String admission) {
            int colon = disk.lastIndexOf(':');
            if (colon < 1) {
                throw invalidValue(disk);
            }
            String size = disk.substring(colon + 1);
            if (!BLOCKS.matcher(size).matches() && ByteSizeText.parse(size).bytes() < DiskGeometry.MIN_DEVICE_BYTES) {
                throw invalidValue(disk);
            }
            return new ReplayDiskOption(Path.of(disk.substring(0, colon)), size, admissions(admission));
        }

        private static List<AdmissionKind> admissions(String names) {
            return Arrays.stream(names.split(","))
                    .map(name -> AdmissionKind.fromName(name)
                            .orElseThrow(() -> new IllegalArgumentException(
                                    "--admission is '" + name + "', must be: " + AdmissionKind.names())))
                    .toList();
        }

        private static IllegalArgumentException invalidValue(String disk) {
            return new IllegalArgumentException("--disk is '" + disk + "', must be: " + USAGE);
        }

        /// The disk, for blocks of a size.
        DiskOptions options(int blockBytes) {
            Matcher blocks = BLOCKS.matcher(size);
            return blocks.matches()
                    ? TierReplay.Settings.disk(directory, Long.parseLong(blocks.group(1)), blockBytes)
                    : DiskOptions.of(directory, ByteSizeText.parse(size).bytes());
        }
    }
}

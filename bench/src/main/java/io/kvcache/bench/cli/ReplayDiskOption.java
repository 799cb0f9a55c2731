package io.kvcache.bench.cli;

import io.kvcache.bench.store.TierReplay;
import io.kvcache.core.tier.AdmissionKind;
import io.kvcache.server.cli.ByteSizeText;
import io.kvcache.tiers.DiskOptions;
import io.kvcache.tiers.disk.DiskGeometry;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The disk of `replay --disk DIR:SIZE`, and which blocks are written to it.
///
/// @param size a number of blocks that may be alive, as `20000 blocks`, or of bytes of the file
record ReplayDiskOption(Path directory, String size, List<AdmissionKind> admissions) {

    private static final String USAGE = "DIR:20000blocks (alive, the reserve comes on top) or DIR:SIZE (of the file)";
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

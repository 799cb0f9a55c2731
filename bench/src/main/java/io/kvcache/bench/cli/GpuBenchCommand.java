package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.BenchDevice;
import io.kvcache.bench.gpu.GpuBandwidth;
import io.kvcache.bench.gpu.GpuComparison;
import io.kvcache.bench.gpu.GpuComparison.GpuCopyResult;
import io.kvcache.gpu.driver.DeviceDriver.DeviceInfo;
import io.kvcache.gpu.driver.DeviceException;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/// `kvcache bench gpu`: blocks, pages and kernels on the first GPU, beside bare copies of as many bytes;
/// where there is no GPU, the same over host memory, which shows that it works and nothing else.
@Command(
        name = "gpu",
        description = "Compare how blocks get to the first GPU and back with bare copies of the same bytes.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class GpuBenchCommand implements Callable<Integer> {

    private static final long FULL_BYTES = 512L << 20;
    private static final long QUICK_BYTES = 64L << 20;
    private static final int FULL_ROUNDS = 15;

    /// What a CPU that stands in for a GPU does within a minute or two, every kernel included.
    private static final long STAND_IN_BYTES = 4L << 20;

    private static final int STAND_IN_ROUNDS = 3;
    private static final long BLOCK_BYTES = 2 << 20;

    /// Two spans of so many bytes are taken, of no more than half of what is free.
    private static final int FREE_DIVISOR = 4;

    /// Sizes are compared over fewer bytes, as they are many.
    private static final int SIZES_DIVISOR = 8;

    private static final String STAND_IN_LIMIT =
            "; a CPU that stands in for a GPU is given %d MiB and %d rounds at most"
                    .formatted(STAND_IN_BYTES >> 20, STAND_IN_ROUNDS);

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(names = "--quick", description = "One short round: shows what is broken, not what is slow.")
    private boolean quick;

    @Option(
            names = "--sizes",
            description =
                    "Instead: bytes a second in pieces of 4 KiB to 2 MiB, one by one, batched, joined, by a kernel.")
    private boolean sizes;

    @Option(names = "--json", description = "One JSON object a line instead of a table.")
    private boolean json;

    @Option(names = "--strict", description = "Exit with 1 when a GPU misses a budget.")
    private boolean strict;

    @Option(names = "--lines", paramLabel = "FILE", description = "Also write one JSON object a line to a file.")
    private @Nullable Path lines;

    @Override
    public Integer call() {
        try (GpuReportWriter pages = pages()) {
            int status = measure(pages);
            if (pages.hasWriteErrors()) {
                printError("--lines: not all could be written to " + lines);
                return 1;
            }
            return status;
        }
    }

    private GpuReportWriter pages() {
        try {
            return new GpuReportWriter(spec.commandLine().getOut(), json, lines);
        } catch (IOException refused) {
            throw new ParameterException(
                    spec.commandLine(), "--lines takes a file that can be written to; " + refused, refused);
        }
    }

    private int measure(GpuReportWriter pages) {
        long full = quick ? QUICK_BYTES : FULL_BYTES;
        try {
            BenchDevice device = BenchDevice.open(FREE_DIVISOR * full);
            try (var driver = device.driver()) {
                long wanted = !isSlow(device) ? full : quick ? BLOCK_BYTES : STAND_IN_BYTES;
                long bytes = Math.min(wanted, driver.freeMemoryBytes() / FREE_DIVISOR / BLOCK_BYTES * BLOCK_BYTES);
                if (bytes == 0) {
                    printError("too little memory of the GPU is free");
                    return 1;
                }
                if (!device.isGpu()) {
                    printError("no GPU is used: " + device.reason());
                    printError("these figures are of host memory and mean nothing");
                }
                return measure(device, bytes, pages);
            }
        } catch (DeviceException | IllegalStateException failure) {
            printError("stopped there: " + failure.getMessage() + "; what is printed was measured");
            return 1;
        }
    }

    private static boolean isSlow(BenchDevice device) {
        return device.kind() == BenchDevice.Kind.STAND_IN;
    }

    private int measure(BenchDevice device, long bytes, GpuReportWriter pages) {
        int rounds = quick ? 1 : isSlow(device) ? STAND_IN_ROUNDS : FULL_ROUNDS;
        DeviceInfo info = device.driver().info();
        if (sizes) {
            GpuCopySizeReport page = new GpuCopySizeReport(pages, info.name(), device.isGpu());
            page.printHead();
            long some = Math.max(bytes / SIZES_DIVISOR, 2 * BLOCK_BYTES);
            new GpuBandwidth(rounds, some, this::printError).run(device.driver(), page::addResult);
            return 0;
        }
        GpuComparison comparison = new GpuComparison(rounds, bytes, this::printError);
        GpuComparisonReport page = new GpuComparisonReport(pages, info, device.isGpu(), comparison);
        page.printHead(device, isSlow(device) ? STAND_IN_LIMIT : "");
        List<GpuCopyResult> cells = comparison.run(device.driver(), page::printResult);
        return strict && device.isGpu() && !cells.stream().allMatch(GpuCopyResult::meetsMinRatio) ? 1 : 0;
    }

    private void printError(String what) {
        GpuReportWriter.print(spec.commandLine().getErr(), "kvcache bench: " + what);
    }
}

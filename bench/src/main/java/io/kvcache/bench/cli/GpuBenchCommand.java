package io.kvcache.bench.cli;

import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.figure.FigureBudgets;
import io.kvcache.bench.gpu.BenchDevice;
import io.kvcache.bench.gpu.GpuBandwidth;
import io.kvcache.bench.gpu.GpuBandwidth.BandwidthResult;
import io.kvcache.bench.gpu.GpuComparison;
import io.kvcache.bench.gpu.GpuComparison.GpuCopyResult;
import io.kvcache.gpu.driver.DeviceDriver.DeviceInfo;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.planner.report.ResultRow;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache bench gpu`: blocks, pages and kernels on the first GPU, beside bare copies of as many bytes.
/// Without a GPU it runs the same over host memory, which shows only that the code works.
@Command(
        name = "gpu",
        description = "Compare how blocks get to the first GPU and back with bare copies of the same bytes.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class GpuBenchCommand implements Callable<Integer> {

    private static final String SUITE = "gpu";
    private static final String NOT_REGISTERED = "  HOST MEMORY IS NOT REGISTERED";
    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final long FULL_BYTES = 512L << 20;
    private static final long QUICK_BYTES = 64L << 20;
    private static final int FULL_ROUNDS = 15;

    /// A CPU that stands in for a GPU moves this many bytes within a minute or two, every kernel included.
    private static final long STAND_IN_BYTES = 4L << 20;

    private static final int STAND_IN_ROUNDS = 3;
    private static final long BLOCK_BYTES = 2 << 20;

    /// The benchmark allocates two spans, each of at most this fraction of the free memory: half of it together.
    private static final int FREE_DIVISOR = 4;

    /// The comparison of sizes moves fewer bytes for each size, as it has many sizes.
    private static final int SIZES_DIVISOR = 8;

    private static final String STAND_IN_LIMIT =
            "; a CPU that stands in for a GPU is given %s MiB and %s rounds at most"
                    .formatted(STAND_IN_BYTES >> 20, STAND_IN_ROUNDS);

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Option(names = "--quick", description = "Run one short round: it shows failures, not speed.")
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

    private @Nullable PrintWriter file;

    @Override
    public Integer call() {
        try (PrintWriter opened = lines == null ? null : new PrintWriter(Files.newBufferedWriter(lines))) {
            file = opened;
            int status = measure();
            if (opened != null && opened.checkError()) {
                printError("--lines: not all could be written to " + lines);
                return 1;
            }
            return status;
        } catch (IOException refused) {
            throw new ParameterException(
                    spec.commandLine(), "--lines takes a file that can be written to; " + refused, refused);
        }
    }

    private int measure() {
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
                return measure(device, bytes);
            }
        } catch (DeviceException | IllegalStateException failure) {
            printError("stopped there: " + failure.getMessage() + "; what is printed was measured");
            return 1;
        }
    }

    private static boolean isMet(Figure figure) {
        return FigureBudgets.isMet(SUITE, figure);
    }

    private static boolean isSlow(BenchDevice device) {
        return device.kind() == BenchDevice.Kind.STAND_IN;
    }

    private int measure(BenchDevice device, long bytes) {
        int rounds = quick ? 1 : isSlow(device) ? STAND_IN_ROUNDS : FULL_ROUNDS;
        DeviceInfo info = device.driver().info();
        String remark = device.isGpu() ? "" : ": the figures mean nothing";
        if (sizes) {
            printRow(info.name() + ", GB/s by the size of pieces" + remark);
            List<String> heads = new ArrayList<>();
            for (int size = GpuBandwidth.MIN_PIECE_BYTES; size <= GpuBandwidth.MAX_PIECE_BYTES; size *= 2) {
                heads.add(size / 1024 + " KiB");
            }
            printRow(sizesRow("", heads));
            long some = Math.max(bytes / SIZES_DIVISOR, 2 * BLOCK_BYTES);
            List<String> row = new ArrayList<>();
            new GpuBandwidth(rounds, some, this::printError)
                    .run(device.driver(), result -> printSize(info, device.isGpu(), result, row));
            return 0;
        }
        GpuComparison comparison = new GpuComparison(rounds, bytes, this::printError);
        printRow(info.name() + ", " + info.driver() + remark);
        printRow(String.format(
                Locale.ROOT,
                "%d MiB each, medians of %d rounds%s",
                bytes >> 20,
                rounds,
                isSlow(device) ? STAND_IN_LIMIT : ""));
        printRow(String.format(Locale.ROOT, "%-20s %10s %12s %8s  %s", "", "GB/s", "bare GB/s", "ratio", "budget"));
        List<GpuCopyResult> cells =
                comparison.run(device.driver(), cell -> printCopy(info, device.isGpu(), comparison, cell));
        return strict && device.isGpu() && !cells.stream().allMatch(cell -> isMet(cell.figure())) ? 1 : 0;
    }

    /// One way to move bytes, beside a bare copy in the same rounds.
    private void printCopy(DeviceInfo info, boolean gpu, GpuComparison scale, GpuCopyResult cell) {
        Figure figure = cell.figure();
        boolean met = isMet(figure);
        printRow(String.format(
                Locale.ROOT,
                "%-20s %10.2f %12.2f %8.2f  %s%s%s",
                figure.name(),
                figure.value(),
                figure.reference(),
                figure.ratio(),
                FigureBudgets.describe(SUITE, figure.name()),
                gpu && !met ? "  missed" : "",
                cell.registered() ? "" : NOT_REGISTERED));
        printJson(new ResultRow()
                .put("device", info.name())
                .put("driver", info.driver())
                .put("gpu", gpu)
                .put("bytes", scale.bytes())
                .put("rounds", scale.rounds())
                .put("registered", cell.registered())
                .put("name", figure.name())
                .put("gigabytes", figure.value())
                .put("bareGigabytes", figure.reference())
                .put("ratio", figure.ratio())
                .put("least", FigureBudgets.limit(SUITE, figure.name()))
                .put("ok", met));
    }

    /// One size of pieces. Those of a direction and way come one behind the other, and are a row once it is
    /// whole.
    private void printSize(DeviceInfo info, boolean gpu, BandwidthResult result, List<String> row) {
        String direction = label(result.direction());
        String way = label(result.way());
        printJson(new ResultRow()
                .put("device", info.name())
                .put("gpu", gpu)
                .put("direction", direction)
                .put("way", way)
                .put("pieceBytes", result.pieceBytes())
                .put("gigabytes", result.gigabytes())
                .put("registered", result.registered()));
        row.add(String.format(Locale.ROOT, "%.2f", result.gigabytes()));
        if (result.pieceBytes() == GpuBandwidth.MAX_PIECE_BYTES) {
            printRow(sizesRow(direction + ", " + way, row) + (result.registered() ? "" : NOT_REGISTERED));
            row.clear();
        }
    }

    private static String sizesRow(String name, List<String> figures) {
        StringBuilder row = new StringBuilder(String.format(Locale.ROOT, "%-21s", name));
        figures.forEach(figure -> row.append(String.format(Locale.ROOT, " %8s", figure)));
        return row.toString();
    }

    private static String label(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }

    private void printError(String what) {
        print(spec.commandLine().getErr(), "kvcache bench: " + what);
    }

    private void printRow(String text) {
        if (!json) {
            print(spec.commandLine().getOut(), text);
        }
    }

    /// Lines are written at once, so that a run that is cut off loses none.
    private void printJson(ResultRow row) {
        String line = JSON.writeValueAsString(row.values());
        if (json) {
            print(spec.commandLine().getOut(), line);
        }
        if (file != null) {
            print(file, line);
        }
    }

    private static void print(PrintWriter to, String text) {
        to.println(text);
        to.flush();
    }
}

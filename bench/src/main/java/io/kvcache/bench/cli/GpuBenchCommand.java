package io.kvcache.bench.cli;

import io.kvcache.bench.figure.Budgets;
import io.kvcache.bench.figure.Figure;
import io.kvcache.bench.gpu.BenchDevice;
import io.kvcache.bench.gpu.GpuBandwidth;
import io.kvcache.bench.gpu.GpuBandwidth.BandwidthResult;
import io.kvcache.bench.gpu.GpuComparison;
import io.kvcache.bench.gpu.GpuComparison.GpuCopyResult;
import io.kvcache.gpu.driver.DeviceDriver.DeviceInfo;
import io.kvcache.gpu.driver.DeviceException;
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

    private static boolean isMet(Figure figure) {
        return Budgets.isMet(SUITE, figure);
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
        return strict && device.isGpu() && !cells.stream().allMatch(cell -> isMet(cell.figure())) ? 1 : 0;
    }

    private void printError(String what) {
        GpuReportWriter.print(spec.commandLine().getErr(), "kvcache bench: " + what);
    }

    /// The output of `bench gpu`: a row for each way, beside a bare copy in the same rounds.
    ///
    /// @param scale how much was moved, and how often
    private record GpuComparisonReport(GpuReportWriter pages, DeviceInfo info, boolean gpu, GpuComparison scale) {

        /// A line of JSON.
        record ComparisonLine(
                String device,
                String driver,
                boolean gpu,
                long bytes,
                int rounds,
                boolean registered,
                String name,
                double gigabytes,
                double bareGigabytes,
                double ratio,
                double least,
                boolean ok) {}

        /// Prints the device, and how many bytes it moves.
        ///
        /// @param limit why this device moves fewer bytes than others; empty when it moves the full amount
        void printHead(BenchDevice device, String limit) {
            String name = info.name() + ", " + info.driver();
            pages.printRow(name + (device.isGpu() ? "" : ": the figures mean nothing"));
            pages.printRow(String.format(
                    Locale.ROOT, "%d MiB each, medians of %d rounds%s", scale.bytes() >> 20, scale.rounds(), limit));
            pages.printRow(
                    String.format(Locale.ROOT, "%-20s %10s %12s %8s  %s", "", "GB/s", "bare GB/s", "ratio", "budget"));
        }

        void printResult(GpuCopyResult cell) {
            Figure figure = cell.figure();
            boolean met = isMet(figure);
            pages.printRow(String.format(
                    Locale.ROOT,
                    "%-20s %10.2f %12.2f %8.2f  %s%s%s",
                    figure.name(),
                    figure.value(),
                    figure.reference(),
                    figure.ratio(),
                    Budgets.describe(SUITE, figure.name()),
                    gpu && !met ? "  missed" : "",
                    cell.registered() ? "" : "  HOST MEMORY IS NOT REGISTERED"));
            pages.printJson(new ComparisonLine(
                    info.name(),
                    info.driver(),
                    gpu,
                    scale.bytes(),
                    scale.rounds(),
                    cell.registered(),
                    figure.name(),
                    figure.value(),
                    figure.reference(),
                    figure.ratio(),
                    Budgets.limit(SUITE, figure.name()),
                    met));
        }
    }

    /// The output of `bench gpu --sizes`: a column for each size of pieces, a row for each direction and way, once
    /// it is whole.
    private static final class GpuCopySizeReport {

        private final GpuReportWriter pages;
        private final String device;
        private final boolean gpu;
        private final List<String> row = new ArrayList<>();

        /// A line of JSON.
        record PagesLine(
                String device,
                boolean gpu,
                String direction,
                String way,
                int pieceBytes,
                double gigabytes,
                boolean registered) {}

        /// @param device what it is called
        /// @param gpu whether the figures mean anything
        GpuCopySizeReport(GpuReportWriter pages, String device, boolean gpu) {
            this.pages = pages;
            this.device = device;
            this.gpu = gpu;
        }

        void printHead() {
            pages.printRow(device + ", GB/s by the size of pieces" + (gpu ? "" : ": the figures mean nothing"));
            List<String> sizes = new ArrayList<>();
            for (int size = GpuBandwidth.MIN_PIECE_BYTES; size <= GpuBandwidth.MAX_PIECE_BYTES; size *= 2) {
                sizes.add(size / 1024 + " KiB");
            }
            pages.printRow(row("", sizes));
        }

        /// Takes the sizes of a direction and way one behind the other.
        void addResult(BandwidthResult bandwidthResult) {
            String direction = label(bandwidthResult.direction());
            String way = label(bandwidthResult.way());
            pages.printJson(new PagesLine(
                    device,
                    gpu,
                    direction,
                    way,
                    bandwidthResult.pieceBytes(),
                    bandwidthResult.gigabytes(),
                    bandwidthResult.registered()));
            row.add(String.format(Locale.ROOT, "%.2f", bandwidthResult.gigabytes()));
            if (bandwidthResult.pieceBytes() == GpuBandwidth.MAX_PIECE_BYTES) {
                String remark = bandwidthResult.registered() ? "" : "  HOST MEMORY IS NOT REGISTERED";
                pages.printRow(row(direction + ", " + way, row) + remark);
                row.clear();
            }
        }

        private static String row(String name, List<String> figures) {
            StringBuilder row = new StringBuilder(String.format(Locale.ROOT, "%-21s", name));
            figures.forEach(figure -> row.append(String.format(Locale.ROOT, " %8s", figure)));
            return row.toString();
        }

        private static String label(Enum<?> constant) {
            return constant.name().toLowerCase(Locale.ROOT).replace('_', ' ');
        }
    }

    /// Writes the figures of a GPU to a table, to lines of JSON, or to both. It writes each at once, so that a run
    /// that is cut off loses none.
    private static final class GpuReportWriter implements AutoCloseable {

        private static final JsonMapper JSON = JsonMapper.builder().build();

        private final List<PrintWriter> tables = new ArrayList<>();
        private final List<PrintWriter> lines = new ArrayList<>();
        private final @Nullable PrintWriter opened;

        /// @param json whether lines are wanted in the table's place
        /// @param file where lines go too, or null for nowhere
        /// @throws IOException when the file cannot be written to
        GpuReportWriter(PrintWriter out, boolean json, @Nullable Path file) throws IOException {
            (json ? lines : tables).add(out);
            opened = file == null ? null : new PrintWriter(Files.newBufferedWriter(file));
            if (opened != null) {
                lines.add(opened);
            }
        }

        /// A row of the table.
        void printRow(String text) {
            tables.forEach(table -> print(table, text));
        }

        /// A line of JSON.
        void printJson(Object value) {
            lines.forEach(to -> print(to, JSON.writeValueAsString(value)));
        }

        /// Returns whether the file lacks lines, for example because its disk is full.
        boolean hasWriteErrors() {
            return opened != null && opened.checkError();
        }

        static void print(PrintWriter to, String text) {
            to.println(text);
            to.flush();
        }

        @Override
        public void close() {
            if (opened != null) {
                opened.close();
            }
        }
    }
}

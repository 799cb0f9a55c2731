package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.BenchDevice;
import io.kvcache.bench.gpu.GpuBandwidth;
import io.kvcache.bench.gpu.GpuCell;
import io.kvcache.bench.gpu.GpuComparison;
import io.kvcache.gpu.driver.DeviceException;
import io.kvcache.gpu.driver.DeviceInfo;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.function.Consumer;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

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
    private static final long BLOCK_BYTES = 2 << 20;

    /// Two spans of so many bytes are taken, of no more than half of what is free.
    private static final int FREE_SHARE = 4;

    /// Sizes are compared over fewer bytes, as they are many.
    private static final int SIZES_SHARE = 8;

    private static final JsonMapper JSON = JsonMapper.builder().build();

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

    /// A line of `--json`.
    record Line(
            String device,
            boolean gpu,
            String name,
            double gigabytes,
            double bareGigabytes,
            double ratio,
            double least,
            boolean ok) {}

    @Override
    public Integer call() {
        long wanted = quick ? QUICK_BYTES : FULL_BYTES;
        BenchDevice device = BenchDevice.open(FREE_SHARE * wanted);
        try (var driver = device.driver()) {
            long bytes = Math.min(wanted, driver.freeBytes() / FREE_SHARE / BLOCK_BYTES * BLOCK_BYTES);
            if (bytes == 0) {
                say(spec.commandLine().getErr(), "kvcache bench: too little memory of the GPU is free");
                return 1;
            }
            if (!device.real()) {
                say(spec.commandLine().getErr(), "kvcache bench: no GPU is used: " + device.why());
                say(spec.commandLine().getErr(), "kvcache bench: these figures are of host memory and mean nothing");
            }
            int rounds = quick ? 1 : FULL_ROUNDS;
            Consumer<String> progress = step -> say(spec.commandLine().getErr(), "kvcache bench: " + step);
            PrintWriter out = spec.commandLine().getOut();
            if (sizes) {
                sizes(device, new GpuBandwidth(rounds, Math.max(bytes / SIZES_SHARE, 2 * BLOCK_BYTES), progress), out);
                return 0;
            }
            return compare(device, new GpuComparison(rounds, bytes, progress), out);
        }
    }

    private int compare(BenchDevice device, GpuComparison comparison, PrintWriter out) {
        DeviceInfo info = device.driver().info();
        Consumer<GpuCell> row = cell ->
                say(out, json ? JSON.writeValueAsString(line(info, device.real(), cell)) : row(cell, device.real()));
        if (!json) {
            say(out, info.name() + ", " + info.driver() + (device.real() ? "" : ": the figures mean nothing"));
            say(out, String.format(Locale.ROOT, "%-14s %10s %12s %8s  %s", "", "GB/s", "bare GB/s", "ratio", "budget"));
        }
        try {
            List<GpuCell> cells = comparison.run(device.driver(), row);
            return strict && device.real() && !cells.stream().allMatch(GpuCell::ok) ? 1 : 0;
        } catch (DeviceException | IllegalStateException failure) {
            say(
                    spec.commandLine().getErr(),
                    "kvcache bench: stopped there: " + failure.getMessage() + "; what is printed was measured");
            return 1;
        }
    }

    private void sizes(BenchDevice device, GpuBandwidth bandwidth, PrintWriter out) {
        GpuSizesPage page =
                new GpuSizesPage(device.driver().info().name(), device.real(), bandwidth.run(device.driver()));
        if (json) {
            page.json(JSON, line -> say(out, line));
        } else {
            page.table(line -> say(out, line));
        }
    }

    private static Line line(DeviceInfo info, boolean gpu, GpuCell cell) {
        return new Line(
                info.name(),
                gpu,
                cell.name(),
                cell.gigabytes(),
                cell.bareGigabytes(),
                cell.ratio(),
                cell.least(),
                cell.ok());
    }

    private static String row(GpuCell cell, boolean gpu) {
        return String.format(
                Locale.ROOT,
                "%-14s %10.2f %12.2f %8.2f  %s%s",
                cell.name(),
                cell.gigabytes(),
                cell.bareGigabytes(),
                cell.ratio(),
                cell.least() == 0 ? "-" : String.format(Locale.ROOT, ">= %.2f", cell.least()),
                gpu && !cell.ok() ? "  missed" : "");
    }

    private static void say(PrintWriter to, String line) {
        to.println(line);
        to.flush();
    }
}

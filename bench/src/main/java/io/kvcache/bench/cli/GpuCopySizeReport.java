package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.GpuBandwidth;
import io.kvcache.bench.gpu.GpuBandwidth.BandwidthResult;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/// What `bench gpu --sizes` prints: a column for each size of pieces, a row for each direction and
/// way, once it is whole.
final class GpuCopySizeReport {

    private final GpuReportWriter pages;
    private final String device;
    private final boolean gpu;
    private final List<String> row = new ArrayList<>();

    /// A line of JSON.
    record JsonLine(
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
        pages.printJson(new JsonLine(
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

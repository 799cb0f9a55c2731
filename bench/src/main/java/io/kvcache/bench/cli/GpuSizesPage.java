package io.kvcache.bench.cli;

import io.kvcache.bench.gpu.GpuBandwidth;
import io.kvcache.bench.gpu.GpuBandwidth.Cell;
import io.kvcache.bench.gpu.GpuBandwidth.Way;
import io.kvcache.gpu.driver.CopyDirection;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Consumer;
import tools.jackson.databind.json.JsonMapper;

/// What `bench gpu --sizes` prints: a column for each size of pieces, a row for each direction and way.
///
/// @param device what it is called
/// @param gpu whether the figures mean anything
record GpuSizesPage(String device, boolean gpu, List<Cell> cells) {

    /// A line of `--json`.
    record Line(String device, boolean gpu, String direction, String way, int pieceBytes, double gigabytes) {}

    void json(JsonMapper mapper, Consumer<String> out) {
        for (Cell cell : cells) {
            String direction = word(cell.direction());
            String way = word(cell.way());
            out.accept(mapper.writeValueAsString(
                    new Line(device, gpu, direction, way, cell.pieceBytes(), cell.gigabytes())));
        }
    }

    void table(Consumer<String> out) {
        out.accept(device + ", GB/s by the size of pieces" + (gpu ? "" : ": the figures mean nothing"));
        List<String> sizes = new ArrayList<>();
        for (int size = GpuBandwidth.SMALLEST; size <= GpuBandwidth.LARGEST; size *= 2) {
            sizes.add(size / 1024 + " KiB");
        }
        out.accept(row("", sizes));
        for (CopyDirection direction : CopyDirection.values()) {
            for (Way way : Way.values()) {
                List<String> figures = cells.stream()
                        .filter(cell -> cell.direction() == direction && cell.way() == way)
                        .map(cell -> String.format(Locale.ROOT, "%.2f", cell.gigabytes()))
                        .toList();
                if (!figures.isEmpty()) {
                    out.accept(row(word(direction) + ", " + word(way), figures));
                }
            }
        }
    }

    private static String row(String name, List<String> figures) {
        StringBuilder row = new StringBuilder(String.format(Locale.ROOT, "%-21s", name));
        figures.forEach(figure -> row.append(String.format(Locale.ROOT, " %8s", figure)));
        return row.toString();
    }

    private static String word(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    }
}

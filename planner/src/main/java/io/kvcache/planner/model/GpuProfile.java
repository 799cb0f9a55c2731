package io.kvcache.planner.model;

import io.kvcache.server.config.Units;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// A GPU.
///
/// @param memoryBytes of one device
/// @param flops dense peak in BF16, a second
/// @param hostBytesPerSecond from host memory to the device
public record GpuProfile(String label, double memoryBytes, double flops, double hostBytesPerSecond) {

    /// The share of a device's memory that engines use by default, as vLLM does.
    private static final double USABLE_SHARE = 0.9;

    private static final double MIN_MEMORY = 1e9;

    /// What PCIe 4 and 5 with 16 lanes were measured to move.
    private static final double PCIE_4 = 25e9;

    private static final double PCIE_5 = 55e9;

    /// Memory and flops are those of the makers' data sheets: B200 as in HGX B200, MI300X as an OAM.
    private static final List<GpuProfile> PRESETS = List.of(
            new GpuProfile("a100", 80e9, 312e12, PCIE_4),
            new GpuProfile("h100", 80e9, 989e12, PCIE_5),
            new GpuProfile("h200", 141e9, 989e12, PCIE_5),
            new GpuProfile("b200", 180e9, 2.25e15, PCIE_5),
            new GpuProfile("l40s", 48e9, 362e12, PCIE_4),
            new GpuProfile("mi300x", 192e9, 1307e12, PCIE_5));

    /// What [#find] takes, for messages.
    public static final String FORMS = PRESETS.stream().map(GpuProfile::label).collect(Collectors.joining(", "))
            + ", or figures as memory=80GB:flops=989e12:link=55GB (a device's memory, dense BF16 operations a"
            + " second, bytes a second from host memory), each once, memory of 1GB and up, the others above 0";

    /// The GPU of a name such as `h100`, in any case, or of figures.
    ///
    /// @return empty when the text is neither
    public static Optional<GpuProfile> find(String text) {
        Optional<GpuProfile> preset = PRESETS.stream()
                .filter(each -> each.label.equalsIgnoreCase(text))
                .findFirst();
        return preset.isPresent() ? preset : ofFigures(text);
    }

    private static Optional<GpuProfile> ofFigures(String text) {
        Map<String, String> figures = new HashMap<>();
        for (String part : text.split(":", -1)) {
            String[] pair = part.split("=", 2);
            if (pair.length < 2 || figures.put(pair[0].toLowerCase(Locale.ROOT), pair[1]) != null) {
                return Optional.empty();
            }
        }
        if (!figures.keySet().equals(Set.of("memory", "flops", "link"))) {
            return Optional.empty();
        }
        GpuProfile gpu = new GpuProfile(
                text, size(figures.get("memory")), number(figures.get("flops")), size(figures.get("link")));
        boolean valid = gpu.memoryBytes >= MIN_MEMORY && gpu.flops > 0 && gpu.hostBytesPerSecond > 0;
        return valid ? Optional.of(gpu) : Optional.empty();
    }

    private static double size(@Nullable String text) {
        return text == null ? 0 : Units.bytes(text).orElse(0);
    }

    private static double number(@Nullable String text) {
        try {
            double number = Double.parseDouble(String.valueOf(text));
            return Double.isFinite(number) ? number : 0;
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    /// Memory that so many of them have for KV once the weights are there; below 0 when these do not fit.
    public long kvBytes(ModelProfile model, int count) {
        return (long) (USABLE_SHARE * memoryBytes * count - model.weightBytes());
    }
}

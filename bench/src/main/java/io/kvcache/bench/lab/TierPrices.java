package io.kvcache.bench.lab;

import io.kvcache.bench.lab.CapacityPlanner.SizingResult.TierMoney;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/// Prices in any one currency, as the user gives them.
///
/// @param gpuHour of one GPU for an hour
/// @param hostGibMonth of one GiB of host memory for a month
/// @param diskGibMonth of one GiB of disk for a month
public record TierPrices(double gpuHour, double hostGibMonth, double diskGibMonth) {

    /// The form that [#parse] takes.
    public static final String FORM = "gpu=2.50,host=2,disk=0.1 (a GPU-hour, a GiB-month of host memory and of disk),"
            + " each once, 0 to 1000000";

    /// A year of 8,760 hours has twelve of them.
    static final double HOURS_A_MONTH = 730;

    private static final double MAX_PRICE = 1e6;
    private static final double GIB = 1L << 30;

    /// Returns the prices of a text; empty if it says something else.
    public static Optional<TierPrices> parse(String text) {
        Map<String, Double> prices = new HashMap<>();
        for (String part : text.split(",", -1)) {
            String[] pair = part.split("=", 2);
            if (pair.length < 2 || !pair[1].matches("\\d{1,7}(\\.\\d{1,9})?")) {
                return Optional.empty();
            }
            double price = Double.parseDouble(pair[1]);
            if (price > MAX_PRICE || prices.put(pair[0], price) != null) {
                return Optional.empty();
            }
        }
        return prices.keySet().equals(Set.of("gpu", "host", "disk"))
                ? Optional.of(new TierPrices(
                        prices.getOrDefault("gpu", 0.0),
                        prices.getOrDefault("host", 0.0),
                        prices.getOrDefault("disk", 0.0)))
                : Optional.empty();
    }

    /// What a tier costs and what it saves.
    ///
    /// @param tier device, host or disk; the device's memory is paid with the GPU
    /// @param gpuSeconds of prefill that the tier saves
    /// @param spanMinutes of the trace in which it saves them, above 0
    TierMoney money(String tier, long bytes, double gpuSeconds, double spanMinutes) {
        double gibMonth = switch (tier) {
            case "host" -> hostGibMonth;
            case "disk" -> diskGibMonth;
            default -> 0;
        };
        double cost = bytes / GIB * gibMonth;
        double gpuHours = gpuSeconds / 3600 * HOURS_A_MONTH / (spanMinutes / 60);
        return new TierMoney(cost, gpuHours, gpuHours * gpuHour, gpuHours * gpuHour - cost);
    }
}

package io.kvcache.planner.lab;

import io.kvcache.planner.lab.CapacityPlanner.SizingResult.TierMoney;
import io.kvcache.planner.trace.Trace;
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
    private static final double HOURS_A_MONTH = 730;

    private static final double MAX_PRICE = 1e6;
    private static final double GIB = 1L << 30;

    /// Returns the prices of a text; empty if it says something else.
    public static Optional<TierPrices> parse(String text) {
        Map<String, Double> prices = new HashMap<>();
        for (String part : text.split(",", -1)) {
            String[] pair = part.split("=", 2);
            if (pair.length < 2 || !pair[1].matches("(?=\\.?\\d)\\d{0,7}(\\.\\d{1,9})?")) {
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

    /// Checks that a trace says what load the money is of.
    ///
    /// @return the trace
    /// @throws IllegalArgumentException when all of its requests come at once
    public static Trace requireTimestamps(Trace trace) {
        if (!(trace.spanMinutes() > 0)) {
            throw new IllegalArgumentException("--price is given, must be: absent for " + trace.name()
                    + ", whose requests all come at once: nothing says how many come in a month");
        }
        return trace;
    }

    /// What tiers cost and save in a month. Memory of GPUs is paid with these.
    ///
    /// @param gpuSeconds of prefill that they save
    /// @param spanMinutes of the trace in which they save them, above 0
    public TierMoney money(long hostBytes, long diskBytes, double gpuSeconds, double spanMinutes) {
        double cost = hostBytes / GIB * hostGibMonth + diskBytes / GIB * diskGibMonth;
        double gpuHours = gpuSeconds / 3600 * HOURS_A_MONTH / (spanMinutes / 60);
        return new TierMoney(cost, gpuHours, gpuHours * gpuHour, gpuHours * gpuHour - cost);
    }
}

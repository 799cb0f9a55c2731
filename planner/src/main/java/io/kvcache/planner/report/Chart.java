package io.kvcache.planner.report;

import java.util.List;
import org.jspecify.annotations.Nullable;

/// A chart, as `report.js` draws it.
///
/// @param title above it, and what a screen reader says of it
/// @param note what to know when reading it; may be empty
/// @param form lines over a logarithmic axis, or lying bars
/// @param axis what the values are
/// @param labels of the places that have values: of the ticks below lines, of the rows of bars
/// @param at where those places lie on a logarithmic axis; empty for bars
public record Chart(
        String title,
        String note,
        ChartType form,
        Axis axis,
        List<String> labels,
        List<Double> at,
        List<Series> series) {

    /// How it looks.
    public enum ChartType {
        LINES,
        BARS,
        /// Bars of several series, one behind the end of the other.
        STACKED_BARS
    }

    /// The axis of the values.
    ///
    /// @param title with the unit
    /// @param percent whether values are shares of one, which are shown in percent
    /// @param least what lies below is cut off; null for nothing
    public record Axis(
            String title, boolean percent, @Nullable Double least) {}

    /// The role of a series, which selects its colour and weight.
    public enum SeriesRole {
        /// The reference for the others.
        BASELINE,
        /// The upper bound.
        BOUND,
        /// The subject of the chart.
        SUBJECT,
        OTHER
    }

    /// Values by place; null where there is none.
    public record Series(String name, SeriesRole role, List<@Nullable Double> values) {}
}

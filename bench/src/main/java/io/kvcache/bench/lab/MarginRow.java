package io.kvcache.bench.lab;

/// Importance beside LRU and LFU-DA at one capacity. The fields' names are what programs rely on.
///
/// @param share of the trace's distinct blocks that fit
/// @param blocks capacity
/// @param lru block hit ratio
/// @param lfuDa block hit ratio
/// @param importance block hit ratio
/// @param belady block hit ratio of Belady's rule with bypass: the bound
/// @param gapClosed share of the way from LRU to the bound
/// @param margin of importance over the better of both others, below 0 where it finds less
/// @param timesLru importance over LRU; 0 where LRU finds nothing
public record MarginRow(
        String trace,
        double share,
        int blocks,
        double lru,
        double lfuDa,
        double importance,
        double belady,
        double gapClosed,
        double margin,
        double timesLru) {

    /// What importance may find less than the better of the others: half a point.
    public static final double MAX_SHORTFALL = 0.005;

    /// The heads of a table of rows in [#csv].
    public static final String CSV_HEAD = CsvFormat.head(MarginRow.class);

    /// Whether importance is nowhere far below.
    public boolean withinMargin() {
        return margin >= -MAX_SHORTFALL;
    }

    /// A line of comma-separated values.
    public String csv() {
        return CsvFormat.line(this);
    }
}

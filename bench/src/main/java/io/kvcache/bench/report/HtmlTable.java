package io.kvcache.bench.report;

import java.util.List;

/// A table, which is there without scripts too.
///
/// @param caption what it shows
/// @param heads of the columns
/// @param rows as long as the heads
public record HtmlTable(String caption, List<String> heads, List<List<Cell>> rows) {

    /// One place of a table.
    ///
    /// @param text as it is shown, not yet escaped
    /// @param number whether it stands to the right
    /// @param heat how strongly it is coloured, 0 to 1
    /// @param best whether it is the best of its column
    public record Cell(String text, boolean number, double heat, boolean best) {

        /// Words.
        public static Cell text(String text) {
            return new Cell(text, false, 0, false);
        }

        /// A number, as it is shown.
        public static Cell number(String text) {
            return new Cell(text, true, 0, false);
        }
    }
}

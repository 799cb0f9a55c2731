package io.kvcache.planner.report;

import io.kvcache.server.cli.ByteSizeText;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/// A column of a table of rows, on a terminal or in a page: a field of the rows and how people see it.
///
/// @param field of a row, as programs have it
/// @param width at least, in characters
public record Column(String head, String field, Format format, int width) {

    private static final int MIN_WIDTH = 9;

    /// How a field is shown.
    public enum Format {
        /// Tells the rows of a table apart.
        KEY(1, 0, ""),
        PERCENT(100, 2, " %"),
        SECONDS(1, 2, " s"),
        WHOLE_SECONDS(1, 0, " s"),
        NUMBER(1, 3, ""),
        COUNT(1, 0, ""),
        BYTES(1, 0, "");

        private final double factor;
        private final int digits;
        private final String unit;

        Format(double factor, int digits, String unit) {
            this.factor = factor;
            this.digits = digits;
            this.unit = unit;
        }

        private String number(double value) {
            return String.format(Locale.ROOT, "%,." + digits + "f", factor * value);
        }
    }

    private static Column of(String head, String field, Format format) {
        return new Column(head, field, format, Math.max(MIN_WIDTH, head.length()));
    }

    public static Column key(String field) {
        return key(field, MIN_WIDTH);
    }

    /// A field that tells the rows of a table apart, with room for its usual texts.
    public static Column key(String field, int width) {
        String head = csvName(field);
        return new Column(head, field, Format.KEY, Math.max(width, head.length()));
    }

    public static Column percent(String head, String field) {
        return of(head, field, Format.PERCENT);
    }

    public static Column seconds(String head, String field) {
        return of(head, field, Format.SECONDS);
    }

    public static Column wholeSeconds(String head, String field) {
        return of(head, field, Format.WHOLE_SECONDS);
    }

    public static Column number(String head, String field) {
        return of(head, field, Format.NUMBER);
    }

    public static Column count(String head, String field) {
        return of(head, field, Format.COUNT);
    }

    public static Column bytes(String head, String field) {
        return of(head, field, Format.BYTES);
    }

    /// Returns the name of a column of CSV: `ttftP50Seconds` becomes `ttft_p50_seconds`.
    public static String csvName(String field) {
        return field.replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT);
    }

    public boolean isKey() {
        return format == Format.KEY;
    }

    /// Returns a value as people see it; a dash for null.
    public String text(@Nullable Object value) {
        if (value == null) {
            return "-";
        }
        if (!(value instanceof Number number)) {
            return value.toString();
        }
        if (format == Format.BYTES || (isKey() && field.endsWith("Bytes"))) {
            return number.longValue() == 0 ? "0 B" : new ByteSizeText(number.longValue()).toString();
        }
        return isKey() && field.toLowerCase(Locale.ROOT).endsWith("share")
                ? String.format(Locale.ROOT, "%.1f %%", 100 * number.doubleValue())
                : format.number(number.doubleValue()) + format.unit;
    }

    /// Returns a mean with half of its interval.
    public String text(double mean, double halfWidth) {
        return format.number(mean) + " ± " + format.number(halfWidth) + format.unit;
    }
}

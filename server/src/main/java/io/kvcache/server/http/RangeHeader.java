package io.kvcache.server.http;

import org.jspecify.annotations.Nullable;

/// A `PinnedRange` header over a value, as RFC 9110 reads it. Several ranges in one header, and what is
/// no range, are answered by the whole value, as that is allowed.
///
/// @param from first byte
/// @param length 0 when no byte of the value is in the range
/// @param isWhole whether no range was asked for
record RangeHeader(long from, long length, boolean isWhole) {

    private static final String UNIT = "bytes=";

    static RangeHeader of(@Nullable String header, long bytes) {
        RangeHeader all = new RangeHeader(0, bytes, true);
        if (header == null || !header.startsWith(UNIT) || header.indexOf(',') >= 0) {
            return all;
        }
        String range = header.substring(UNIT.length()).strip();
        int dash = range.indexOf('-');
        try {
            if (dash < 0) {
                return all;
            }
            if (dash == 0) {
                long last = Long.parseLong(range.substring(1));
                return clamp(Math.max(0, bytes - last), bytes - 1, bytes, last > 0);
            }
            long from = Long.parseLong(range.substring(0, dash));
            long to = dash == range.length() - 1 ? bytes - 1 : Long.parseLong(range.substring(dash + 1));
            return to < from && dash < range.length() - 1 ? all : clamp(from, to, bytes, true);
        } catch (NumberFormatException _) {
            return all;
        }
    }

    private static RangeHeader clamp(long from, long to, long bytes, boolean any) {
        long end = Math.min(to, bytes - 1);
        boolean none = !any || from > end || from < 0;
        return none ? new RangeHeader(0, 0, false) : new RangeHeader(from, end - from + 1, false);
    }

    boolean isSatisfiable() {
        return isWhole || length > 0;
    }
}

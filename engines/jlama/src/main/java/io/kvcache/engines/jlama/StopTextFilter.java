package io.kvcache.engines.jlama;

import java.util.List;

/// Ends an answer before the first of some texts, and holds back what might become one.
final class StopTextFilter {

    private final List<String> stops;
    private String pendingText = "";
    private boolean found;

    StopTextFilter(List<String> stops) {
        this.stops = stops;
    }

    /// What of the answer may be shown now that there is more of it.
    String add(String more) {
        if (found) {
            return "";
        }
        String all = pendingText + more;
        int end = all.length();
        for (String stop : stops) {
            int at = all.indexOf(stop);
            if (at >= 0 && at < end) {
                end = at;
                found = true;
            }
        }
        if (found) {
            pendingText = "";
            return all.substring(0, end);
        }
        int safe = all.length() - stopPrefixLength(all);
        pendingText = all.substring(safe);
        return all.substring(0, safe);
    }

    boolean isFound() {
        return found;
    }

    /// What was held back and became nothing.
    String flush() {
        String rest = pendingText;
        pendingText = "";
        return rest;
    }

    /// How much of the end of a text is the beginning of a stop.
    private int stopPrefixLength(String text) {
        int longest = 0;
        for (String stop : stops) {
            for (int length = Math.min(stop.length() - 1, text.length()); length > longest; length--) {
                if (text.regionMatches(text.length() - length, stop, 0, length)) {
                    longest = length;
                }
            }
        }
        return longest;
    }
}

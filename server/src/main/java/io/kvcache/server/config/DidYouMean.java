package io.kvcache.server.config;

import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/// What was probably meant.
final class DidYouMean {

    /// More wrong letters than this are another word.
    private static final int MAX_DISTANCE = 4;

    private DidYouMean() {}

    static Optional<String> findNearest(String typed, Collection<String> known) {
        return known.stream()
                .min(Comparator.comparingInt(each -> distance(typed, each)))
                .filter(nearest -> distance(typed, nearest) <= Math.min(MAX_DISTANCE, typed.length() / 2));
    }

    /// Letters to add, drop or change.
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            row[j] = j;
        }
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int above = row[j];
                int change = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                row[j] = Math.min(change, 1 + Math.min(above, row[j - 1]));
                diagonal = above;
            }
        }
        return row[b.length()];
    }
}

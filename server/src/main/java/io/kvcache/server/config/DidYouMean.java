package io.kvcache.server.config;

import java.util.Collection;
import java.util.Comparator;
import java.util.Optional;

/// Suggests the name that was probably meant.
public final class DidYouMean {

    /// More wrong letters than this are another word.
    private static final int MAX_DISTANCE = 4;

    private DidYouMean() {}

    /// Returns the known name that is nearest to a typed one, if at most half of its letters are wrong.
    public static Optional<String> findNearest(String typed, Collection<String> known) {
        return findNearest(typed, known, Math.min(MAX_DISTANCE, typed.length() / 2));
    }

    /// Returns the known name that is nearest to a typed one, if no more letters are wrong.
    static Optional<String> findNearest(String typed, Collection<String> known, int mostWrong) {
        return known.stream()
                .min(Comparator.comparingInt(each -> distance(typed, each)))
                .filter(nearest -> distance(typed, nearest) <= mostWrong);
    }

    /// Letters to add, drop or change, and neighbours to swap.
    private static int distance(String a, String b) {
        int[][] rows = new int[a.length() + 1][b.length() + 1];
        for (int i = 0; i <= a.length(); i++) {
            for (int j = 0; j <= b.length(); j++) {
                if (i == 0 || j == 0) {
                    rows[i][j] = i + j;
                    continue;
                }
                int change = rows[i - 1][j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                rows[i][j] = Math.min(change, 1 + Math.min(rows[i - 1][j], rows[i][j - 1]));
                if (i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1)) {
                    rows[i][j] = Math.min(rows[i][j], 1 + rows[i - 2][j - 2]);
                }
            }
        }
        return rows[a.length()][b.length()];
    }
}

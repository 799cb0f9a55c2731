package io.kvcache.bench.figure;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.regex.Pattern;

/// The budgets of all figures: the table `budgets.txt` beside this class, which alone decides what is missed.
///
/// A line has a suite, the name of a figure in which `*` stands for any text, a bound, and what is measured. A
/// bound is `value` or `ratio`, `<=` or `>=`, and a number; or `-` for a figure that is only shown. The first line
/// that fits a figure counts, and a figure without a line has no budget.
public final class FigureBudgets {

    private static final List<Budget> TABLE = read();

    private FigureBudgets() {}

    /// A line of the table.
    private record Budget(String suite, Pattern figure, String name, String bound, String meaning) {

        static Budget parse(String line) {
            String[] fields = line.strip().split(" *\\| *", -1);
            if (fields.length != 4 || !fields[2].matches("-|(value|ratio) [<>]= [0-9.]+")) {
                throw new IllegalStateException("budgets.txt has no budget in: " + line);
            }
            String regex = Pattern.quote(fields[1]).replace("*", "\\E.*\\Q");
            return new Budget(fields[0], Pattern.compile(regex), fields[1], fields[2], fields[3]);
        }

        boolean isMet(Figure figure) {
            if (bound.equals("-")) {
                return true;
            }
            String[] words = bound.split(" ", -1);
            double measured = words[0].equals("ratio") ? figure.ratio() : figure.value();
            double limit = Double.parseDouble(words[2]);
            return words[1].equals("<=") ? measured <= limit : measured >= limit;
        }

        /// Without `value`, which is what a bound is of where it says nothing.
        String describe() {
            return bound.replaceFirst("^value ", "");
        }
    }

    private static List<Budget> read() {
        try (InputStream in = FigureBudgets.class.getResourceAsStream("budgets.txt")) {
            if (in == null) {
                throw new IllegalStateException("budgets.txt is not in the jar");
            }
            return new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> !line.isBlank() && !line.startsWith("#"))
                    .map(Budget::parse)
                    .toList();
        } catch (IOException unreadable) {
            throw new UncheckedIOException(unreadable);
        }
    }

    private static Optional<Budget> find(String suite, String figure) {
        return TABLE.stream()
                .filter(budget -> budget.suite.equals(suite)
                        && budget.figure.matcher(figure).matches())
                .findFirst();
    }

    /// Returns whether a figure keeps its budget.
    public static boolean isMet(String suite, Figure figure) {
        return find(suite, figure.name()).map(budget -> budget.isMet(figure)).orElse(true);
    }

    /// Returns the bound of a figure for a column of a table; `-` where there is none.
    public static String describe(String suite, String figure) {
        return find(suite, figure).map(Budget::describe).orElse("-");
    }

    /// Returns the bound's number; 0 where there is none.
    public static double limit(String suite, String figure) {
        return find(suite, figure)
                .filter(budget -> !budget.bound.equals("-"))
                .map(budget -> Double.parseDouble(budget.bound.split(" ", -1)[2]))
                .orElse(0.0);
    }

    /// Returns the lines of a suite for people.
    public static String list(String suite) {
        StringBuilder text = new StringBuilder();
        TABLE.stream()
                .filter(budget -> budget.suite.equals(suite))
                .forEach(budget -> text.append(String.format(
                        Locale.ROOT, "  %-24s %-16s %s%n", budget.name, budget.describe(), budget.meaning)));
        return text.toString();
    }
}

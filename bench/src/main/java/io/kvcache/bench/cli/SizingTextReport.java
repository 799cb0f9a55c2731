package io.kvcache.bench.cli;

import io.kvcache.bench.lab.CapacityPlanner.SizingResult;
import io.kvcache.server.cli.ByteSizeText;
import java.io.PrintWriter;
import java.util.Locale;

/// What `kvcache size` found, for people.
@SuppressWarnings("AnnotateFormatMethod") // the annotation lives in a library that nothing else here needs
final class SizingTextReport {

    private final PrintWriter out;

    SizingTextReport(PrintWriter out) {
        this.out = out;
    }

    /// @param computeMillis that computing a block takes
    void print(SizingResult answer, double computeMillis) {
        if (answer.reachable()) {
            line(
                    "%s: %.4f of the full blocks found (at most %.4f)",
                    answer.trace(), answer.targetHitRatio(), answer.ceiling());
            answer.rows().forEach(row -> print(row, answer, computeMillis));
            answer.fleets().forEach(row -> print(row, answer));
        } else {
            line(
                    "%s cannot reach %.4f: with memory for everything, %.4f of its full blocks are found.",
                    answer.trace(), answer.targetHitRatio(), answer.ceiling());
        }
        if (answer.truncated()) {
            line(
                    "%s short: the second half of the requests finds up to %.4f. A longer trace would show more reuse,"
                            + " and need more memory.",
                    answer.spanMinutes() > 0
                            ? String.format(Locale.ROOT, "Its %.0f minutes are", answer.spanMinutes())
                            : "The trace is",
                    answer.laterCeiling());
        }
    }

    private void print(SizingResult.Row row, SizingResult answer, double computeMillis) {
        line(
                "  %-10s  %,9d blocks of %d tokens  %s of %s",
                row.policy(), row.blocks(), answer.blockTokens(), new ByteSizeText(row.bytes()), answer.model());
        for (SizingResult.Tier tier : row.tiers()) {
            if (tier.bytes() > 0) {
                line(
                        "    %-8s  %10s  finds %.4f%s",
                        tier.tier(), new ByteSizeText(tier.bytes()), tier.hitRatio(), cost(tier, computeMillis));
            }
        }
    }

    private static String cost(SizingResult.Tier tier, double computeMillis) {
        return tier.millisABlock() == 0
                ? ""
                : String.format(
                        Locale.ROOT,
                        ", %.1f ms to load a block, %.1f ms to compute it",
                        tier.millisABlock(),
                        computeMillis);
    }

    private void print(SizingResult.FleetRow row, SizingResult answer) {
        line(
                "  %d instances, route %s, each a cache of its own (the busiest gets %.2f times the mean):",
                row.instances(), row.route(), row.busiest());
        line(
                "    with the same memory together they find %.4f; one that they share, %.4f",
                row.sameMemoryHitRatio(), answer.targetHitRatio());
        if (row.blocks() < 0) {
            line("    for %.4f no memory would do: at most %.4f", answer.targetHitRatio(), row.ceiling());
        } else {
            line("    for %.4f they need %s together", answer.targetHitRatio(), new ByteSizeText(row.bytes()));
        }
    }

    private void line(String format, Object... arguments) {
        out.println(String.format(Locale.ROOT, format, arguments));
    }
}

package io.kvcache.bench.cli;

import io.kvcache.bench.suite.BenchResult;
import io.kvcache.bench.transport.HeapComparison.HeapResult;
import io.kvcache.bench.transport.MatchComparison.MatchResult;
import io.kvcache.bench.transport.TransferEndpoint.ResourceUsage;
import io.kvcache.bench.transport.SharedMemoryComparison.SharedMemoryResult;
import io.kvcache.bench.transport.TransferMeter.TransferStats;
import io.kvcache.bench.transport.TransportComparison.TransportResult;
import java.io.PrintWriter;
import java.util.List;
import java.util.Locale;

/// What the comparisons of transports found, in lines.
record TransportTextReport(PrintWriter out) {

    private static final String HEAD =
            "            KiB flight |   GB/s   p50 µs   p99 µs  CPU s/GB |   GB/s   p50 µs   p99 µs  CPU s/GB |"
                    + "  ratio | heap B/block: here  server";

    /// A comparison.
    ///
    /// @param ours a name for the left side
    /// @param other a name for the right side
    void print(List<TransportResult> cells, String ours, String other) {
        say("");
        say("                       |       %-27s  |       %-27s  |".formatted(ours, other));
        say(HEAD);
        for (TransportResult cell : cells) {
            say(String.format(
                    Locale.ROOT,
                    "%-7s  %6d %6d |%s%s |%s%s | %6.2f |          %9.0f %7.0f",
                    cell.cargo().operation().label(),
                    cell.cargo().bytes() >> 10,
                    cell.cargo().inFlight(),
                    figures(cell.ours()),
                    processor(cell.cost()),
                    figures(cell.bare()),
                    processor(cell.bareCost()),
                    cell.ratio(),
                    cell.cost().heapBytes(),
                    cell.cost().serverHeapBytes()));
        }
    }

    /// Uses of shared memory.
    void printShared(List<SharedMemoryResult> cells) {
        say("");
        say("                         |       shared memory       |         bare copy         |        | server");
        say("              KiB flight |   GB/s   p50 µs   p99 µs  |   GB/s   p50 µs   p99 µs  |  ratio | µs a block");
        for (SharedMemoryResult cell : cells) {
            say(String.format(
                    Locale.ROOT,
                    "%-9s  %6d %6d |%s |%s | %6.2f | %6.2f",
                    cell.use().name().toLowerCase(Locale.ROOT).replace('_', ' '),
                    cell.cargo().bytes() >> 10,
                    cell.cargo().inFlight(),
                    figures(cell.ours()),
                    figures(cell.bare()),
                    cell.ratio(),
                    cell.serverMicros()));
        }
    }

    /// Matches of 1,024 keys.
    void printMatches(List<MatchResult> cells) {
        say("");
        say("match of 1,024 keys    |   p50 µs   p99 µs | heap B/match: here  server");
        for (MatchResult cell : cells) {
            say(String.format(
                    Locale.ROOT,
                    "%-8s %-13s | %8.1f %8.1f |          %9.0f %7.0f",
                    cell.by(),
                    cell.told() ? "told before" : "keys sent",
                    cell.moves().p50Micros(),
                    cell.moves().p99Micros(),
                    cell.cost().heapBytes(),
                    cell.cost().serverHeapBytes()));
        }
    }

    /// What is left on the heaps.
    void printHeap(List<HeapResult> cells) {
        say("");
        say("heap of 64 KiB blocks  |  B/request  B/further block | server's: B/request  B/further block");
        for (HeapResult cell : cells) {
            say(String.format(
                    Locale.ROOT,
                    "%-22s | %10.0f %16.0f | %19.0f %16.0f",
                    cell.what(),
                    cell.request(),
                    cell.block(),
                    cell.serverRequest(),
                    cell.serverBlock()));
        }
    }

    /// The answers that are beyond their budgets.
    void printMissed(List<BenchResult> answers) {
        for (BenchResult benchResult : answers) {
            if (!benchResult.isWithinThreshold()) {
                say(String.format(
                        Locale.ROOT,
                        "missed: %s is %.2f %s, ratio %.2f; wanted %s",
                        benchResult.spec().name(),
                        benchResult.value(),
                        benchResult.spec().unit(),
                        benchResult.ratio(),
                        benchResult.spec().threshold().describe()));
            }
        }
    }

    private static String figures(TransferStats transferStats) {
        return String.format(
                Locale.ROOT,
                " %6.2f %8.1f %8.1f ",
                transferStats.gigabytes(),
                transferStats.p50Micros(),
                transferStats.p99Micros());
    }

    private static String processor(ResourceUsage resourceUsage) {
        return String.format(Locale.ROOT, " %8.3f", resourceUsage.processorSeconds());
    }

    private void say(String line) {
        out.println(line);
        out.flush();
    }
}

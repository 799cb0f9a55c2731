package io.kvcache.bench.policy;

import io.kvcache.planner.replay.ReplayCatalogue;
import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.openjdk.jmh.Main;
import org.openjdk.jmh.infra.BenchmarkParams;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.NoBenchmarksException;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;

/// The main class of the jar of `./kvcache hitrate-jar`: JMH, with the parameters of [PrefixHitRateBenchmark] checked
/// before a JVM is started for each of their combinations, and a last table that has the ratios with all digits.
public final class HitRateMain {

    private static final List<String> PARAMETERS = List.of("trace", "policy", "policyClass", "blocks", "rule");

    private static final String USAGE =
            """
            Usage: java -jar kvcache-hitrate.jar [-p NAME=VALUE[,VALUE...]]... [OPTION OF JMH...]

            Replays a trace of prompts against the metadata of a cache, for each combination of the values:
            its hit ratio, and nanoseconds per block.

              -p trace=TRACE        a file in the format of Mooncake, Qwen-Bailian or token ids, or conversation,
                                    synthetic, generated[:SEED], popular[:SEED], hostile[:SEED],
                                    agents[:SEED][:NAME=N...] or mixed[:SEED][:NAME=N...]; default: %s
              -p policy=NAME        a policy of the list below; default: lru, importance
              -p policyClass=CLASS  also a policy of your own: an EvictionPolicy or EvictionPolicyFactory in the
                                    current folder or on the class path; default policies only if named too
              -p blocks=N           capacity in blocks, or N%% of the trace's distinct blocks; default: 3%%, 11%%
              -p rule=RULE          reference: every id is a block; full-blocks: as the store does, never a
                                    partial block; default: reference

            Policies: %s

            A policy of your own, in an empty folder, and one in a jar:

              javac -cp kvcache-hitrate.jar my/Policy.java
              java -jar kvcache-hitrate.jar -p trace=my.jsonl -p policy=lru -p policyClass=my.Policy -p blocks=1000
              java -cp kvcache-hitrate.jar:my.jar %s -p policyClass=my.Policy

            What follows is of JMH.
            """.formatted(HitRateParameters.DEFAULT_TRACE, ReplayCatalogue.names(), HitRateMain.class.getName());

    /// The list of benchmarks in the jar is that of the whole module.
    private static final String ALL_OTHERS =
            "^(?!" + PrefixHitRateBenchmark.class.getName().replace(".", "\\.") + "\\.)";

    private HitRateMain() {}

    /// Runs JMH and exits: 0 done, 1 it failed, 2 a parameter or an option was not understood.
    public static void main(String... arguments) {
        System.exit(run(System.out, System.err, arguments));
    }

    static int run(PrintStream out, PrintStream err, String... arguments) {
        try {
            String[] words = Stream.of(arguments)
                    .map(word -> word.equals("--help") ? "-h" : word)
                    .toArray(String[]::new);
            CommandLineOptions asked = new CommandLineOptions(words);
            if (asked.shouldHelp()) {
                out.println(USAGE);
                asked.showHelp();
            } else if (asked.shouldList()
                    || asked.shouldListWithParams()
                    || asked.shouldListProfilers()
                    || asked.shouldListResultFormats()) {
                Main.main(Stream.concat(Stream.of(words), Stream.of("-e", ALL_OTHERS))
                        .toArray(String[]::new));
            } else {
                checkNames(words);
                print(out, new Runner(options(asked, err)).run());
            }
            return 0;
        } catch (CommandLineOptionException | IllegalArgumentException wrong) {
            err.println("kvcache-hitrate: " + wrong.getMessage());
            return 2;
        } catch (NoBenchmarksException none) {
            err.println("kvcache-hitrate: no benchmark matches; -l lists what there is");
            return 2;
        } catch (RunnerException failed) {
            Throwable cause = failed.getCause();
            err.println("kvcache-hitrate: " + failed.getMessage() + (cause == null ? "" : " " + cause.getMessage()));
            return 1;
        } catch (IOException unwritten) {
            throw new UncheckedIOException(unwritten); // of help and lists, which go to memory and the standard output
        }
    }

    /// JMH passes over names that it does not know.
    private static void checkNames(String... words) {
        for (int i = 1; i < words.length; i++) {
            String name = words[i].replaceFirst("=.*", "");
            if (words[i - 1].equals("-p") && !PARAMETERS.contains(name)) {
                throw new IllegalArgumentException(
                        "-p is '" + words[i] + "', must be NAME=VALUE of: " + String.join(", ", PARAMETERS));
            }
        }
    }

    /// What was asked for, with classes among the policies, and with what this benchmark needs.
    private static Options options(CommandLineOptions asked, PrintStream err) {
        List<String> policies = new ArrayList<>(given(asked, "policy"));
        policies.forEach(HitRateParameters::policy);
        Collection<String> classes = given(asked, "policyClass");
        classes.forEach(each -> HitRateParameters.ofClass("policyClass", each));
        policies.addAll(classes);
        given(asked, "blocks").forEach(HitRateParameters.Capacity::parse);
        given(asked, "rule").forEach(HitRateParameters::rule);
        for (String trace : given(asked, "trace")) {
            HitRateParameters.trace(trace)
                    .partialBlockRemark()
                    .ifPresent(remark -> err.println("kvcache-hitrate: " + remark));
        }
        ChainedOptionsBuilder options = new OptionsBuilder()
                .parent(asked)
                .addProfiler(HitRateProfiler.class)
                .exclude(ALL_OTHERS)
                .shouldFailOnError(asked.shouldFailOnError().orElse(true));
        asked.getExcludes().forEach(options::exclude);
        if (!policies.isEmpty()) {
            options.param("policy", policies.toArray(String[]::new));
        }
        return options.build();
    }

    private static Collection<String> given(CommandLineOptions asked, String name) {
        return asked.getParameter(name).orElse(List.of());
    }

    private static void print(PrintStream out, Collection<RunResult> results) {
        int width = results.stream()
                .mapToInt(result -> result.getParams().getParam("policy").length())
                .reduce("policy".length(), Math::max);
        String row = "%-20s  %8s  %10s  %-" + width + "s  %-11s  %s%n";
        out.printf(
                Locale.ROOT,
                "%nHit ratio: blocks found of blocks looked up. ns: time of a replay for each block looked up.%n");
        out.printf(Locale.ROOT, row, "hit ratio", "ns", "blocks", "policy", "rule", "trace");
        for (RunResult result : results) {
            BenchmarkParams parameters = result.getParams();
            out.printf(
                    Locale.ROOT,
                    row,
                    score(result, HitRateProfiler.RATIO),
                    String.format(Locale.ROOT, "%.1f", score(result, HitRateProfiler.NANOS)),
                    parameters.getParam("blocks"),
                    parameters.getParam("policy"),
                    parameters.getParam("rule"),
                    parameters.getParam("trace"));
        }
    }

    private static double score(RunResult result, String name) {
        return HitRateProfiler.score(result.getSecondaryResults(), name);
    }
}

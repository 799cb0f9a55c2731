package io.kvcache.planner.cli;

import io.kvcache.core.identity.Dtype;
import io.kvcache.core.policy.EvictionPolicies;
import io.kvcache.core.policy.EvictionPolicyFactory;
import io.kvcache.planner.cli.RowPrinter.OutputFormat;
import io.kvcache.planner.lab.EngineHardware;
import io.kvcache.planner.lab.TierPrices;
import io.kvcache.planner.model.GpuProfile;
import io.kvcache.planner.model.ModelCatalogue;
import io.kvcache.planner.model.ModelConfigReader;
import io.kvcache.planner.model.ModelConfigReader.DerivedModel;
import io.kvcache.planner.model.ModelProfile;
import io.kvcache.planner.replay.BlockCountingRule;
import io.kvcache.planner.replay.PolicyReplay;
import io.kvcache.planner.replay.ReplayCatalogue;
import io.kvcache.planner.replay.SimulatedCache;
import io.kvcache.planner.report.HtmlReport;
import io.kvcache.planner.report.HtmlReport.ReportOrigin;
import io.kvcache.planner.report.MachineInfo;
import io.kvcache.planner.serving.EngineCalibration;
import io.kvcache.planner.trace.AgentTraceGenerator.AgentWorkload;
import io.kvcache.planner.trace.Trace;
import io.kvcache.planner.trace.TraceFinder;
import io.kvcache.planner.trace.TraceReader;
import io.kvcache.planner.trace.TraceReader.MalformedLine;
import io.kvcache.planner.trace.TraceSource;
import io.kvcache.server.cli.Version;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Supplier;
import java.util.stream.Collectors;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/// Options that several planning commands take, each a picocli mixin, and what turns texts into values.
final class PlanningOptions {

    /// Warning about times to the first token for a trace without timestamps.
    static final String NO_TIMESTAMPS_NOTE = "the trace does not say when requests came, so all come at once: times to"
            + " the first token are of one queue.";

    private PlanningOptions() {}

    /// @param json whether `--json` is given, which stands for `--format json`
    /// @throws IllegalArgumentException when `--format` takes no such format, or the two do not fit together
    static OutputFormat outputFormat(String format, boolean json) {
        OutputFormat named = switch (format) {
            case "text" -> OutputFormat.TEXT;
            case "json" -> OutputFormat.JSON;
            case "csv" -> OutputFormat.CSV;
            default -> throw invalidOption("--format", format, "text, json, csv");
        };
        if (json && named == OutputFormat.CSV) {
            throw invalidOption("--format", format, "json, where --json is given");
        }
        return json ? OutputFormat.JSON : named;
    }

    /// A policy of the store.
    static EvictionPolicyFactory storePolicy(String name) {
        return EvictionPolicies.find(name).orElseThrow(() -> invalidOption("--policy", name, EvictionPolicies.names()));
    }

    static List<BlockCountingRule> rules(String name) {
        return switch (name) {
            case "reference" -> List.of(BlockCountingRule.REFERENCE);
            case "full-blocks" -> List.of(BlockCountingRule.FULL_BLOCKS);
            case "both" -> List.of(BlockCountingRule.REFERENCE, BlockCountingRule.FULL_BLOCKS);
            default -> throw invalidOption("--rule", name, "reference, full-blocks, both");
        };
    }

    static BlockCountingRule parseRule(String name) {
        return switch (name) {
            case "reference" -> BlockCountingRule.REFERENCE;
            case "full-blocks" -> BlockCountingRule.FULL_BLOCKS;
            default -> throw invalidOption("--rule", name, "reference, full-blocks");
        };
    }

    static MalformedLine.Handling malformed(String name) {
        return switch (name) {
            case "skip" -> MalformedLine.Handling.SKIP;
            case "refuse" -> MalformedLine.Handling.REFUSE;
            default -> throw invalidOption("--malformed", name, "skip, refuse");
        };
    }

    /// Parses a share in percent, with or without the sign.
    ///
    /// @return above 0 to 1
    /// @throws IllegalArgumentException that names the option, and what may be
    static double parseShare(String option, String percent) {
        double number;
        try {
            number = Double.parseDouble(percent.endsWith("%") ? percent.substring(0, percent.length() - 1) : percent);
        } catch (NumberFormatException e) {
            number = 0;
        }
        if (!(number > 0 && number <= 100)) {
            throw invalidOption(option, percent, "above 0 to 100 (percent)");
        }
        return number / 100;
    }

    static void checkWarmup(int requests) {
        if (requests < 0) {
            throw invalidOption("--warmup", String.valueOf(requests), "at least 0");
        }
    }

    /// Checks the warm-up against a trace: at least one of its requests must count.
    static void checkWarmup(int requests, Trace trace) {
        int all = trace.requests().size();
        if (requests >= all) {
            throw invalidOption(
                    "--warmup", String.valueOf(requests), "below the " + all + " requests of " + trace.name());
        }
    }

    /// Returns the error of an option with a wrong value, which lists the allowed ones.
    static IllegalArgumentException invalidOption(String option, String value, String allowed) {
        return new IllegalArgumentException(option + " is '" + value + "', must be: " + allowed);
    }

    /// Looks whether a file that was asked for can be there.
    ///
    /// @throws IllegalArgumentException when it cannot
    static void checkWritable(String option, @Nullable Path file) {
        if (file != null) {
            Path folder = file.toAbsolutePath().getParent();
            if (folder == null || !Files.isWritable(folder) || Files.isDirectory(file)) {
                throw invalidOption(option, file.toString(), "a file in a folder that can be written to");
            }
        }
    }

    /// Reads the times that `lab calibrate` has measured.
    ///
    /// @throws IllegalArgumentException when the file has none
    static EngineCalibration readCalibration(Path file) {
        try {
            return EngineCalibration.read(file);
        } catch (IOException unreadable) {
            throw new IllegalArgumentException(
                    "--calibrate: cannot read " + file + ": " + unreadable.getMessage(), unreadable);
        } catch (IllegalArgumentException wrong) {
            throw new IllegalArgumentException("--calibrate: " + wrong.getMessage(), wrong);
        }
    }

    /// Published traces that are replayed where none is named, or a generated one, which is said.
    private static List<String> usualTraces(List<String> published, CommandSpec command) {
        List<String> found = new TraceFinder().findOrGenerated(published);
        if (!published.containsAll(found)) {
            PrintWriter errors = command.commandLine().getErr();
            errors.println("kvcache: " + String.join(" and ", published) + " of Mooncake are not here, so "
                    + found.getFirst() + " is replayed; docs/planning.md says where traces come from");
            errors.flush();
        }
        return found;
    }

    /// The option that names one trace, for commands that replay it.
    static final class TraceOption {

        private static final List<String> USUAL = List.of("conversation");

        @Spec(Spec.Target.MIXEE)
        private CommandSpec command = CommandSpec.create();

        @Option(
                names = "--trace",
                paramLabel = "TRACE",
                description = "A file in the format of Mooncake, Qwen-Bailian or token ids, or"
                        + " conversation, synthetic, generated[:SEED], popular[:SEED], hostile[:SEED],"
                        + " agents[:SEED][:NAME=N...] or mixed[:SEED][:NAME=N...], NAME of " + AgentWorkload.NAMES + "."
                        + " Default: conversation where it is found, else generated:1.")
        private String name = "";

        /// Returns the named source, or the usual one.
        ///
        /// @throws IllegalArgumentException that says what may be
        TraceSource traceSource() {
            if (name.isEmpty()) {
                name = usualTraces(USUAL, command).getFirst();
            }
            return TraceSource.parse(name);
        }

        /// Loads the trace. A malformed line is an error.
        ///
        /// @param errors told once of what the trace lacks
        static Trace loadTrace(TraceSource source, PrintWriter errors) throws IOException {
            Trace read = source.load(new TraceReader(MalformedLine.Handling.REFUSE, _ -> {}));
            read.partialBlockRemark().ifPresent(remark -> errors.println("kvcache: " + remark));
            errors.flush();
            return read;
        }
    }

    /// The option that names several traces, for commands of the laboratory that compare on all of them.
    static final class TraceListOption {

        private static final List<String> USUAL = List.of("conversation", "synthetic");

        @Spec(Spec.Target.MIXEE)
        private CommandSpec command = CommandSpec.create();

        @Option(
                names = "--trace",
                paramLabel = "TRACE",
                split = ",",
                description = "Traces: a file in the format of Mooncake, Qwen-Bailian or token ids, or"
                        + " conversation, synthetic, generated[:SEED], popular[:SEED], hostile[:SEED],"
                        + " agents[:SEED][:NAME=N...] or mixed[:SEED][:NAME=N...], NAME of " + AgentWorkload.NAMES + "."
                        + " Default: conversation and synthetic where they are found, else generated:1.")
        private List<String> names = new ArrayList<>();

        /// Returns the named sources, or the usual ones. [PlanningOptions.TraceOption#loadTrace] reads one.
        ///
        /// @throws IllegalArgumentException that says what may be
        List<TraceSource> traceSources() {
            if (names.isEmpty()) {
                names = usualTraces(USUAL, command);
            }
            return names.stream().map(TraceSource::parse).toList();
        }
    }

    /// The option that says how rows are printed.
    static final class FormatOption {

        /// What it chooses from.
        static final String DESCRIPTION =
                "A table, one JSON object a line, or comma-separated values. Default: ${DEFAULT-VALUE}.";

        @Option(names = "--format", paramLabel = "text|json|csv", defaultValue = "text", description = DESCRIPTION)
        private String format = "";

        @Option(names = "--json", description = "As --format json.")
        private boolean json;

        /// @throws IllegalArgumentException that says what may be
        OutputFormat format() {
            return outputFormat(format, json);
        }
    }

    /// The options that say whose KV is counted.
    static final class ModelOption {

        private static final String DEFAULT_MODEL = "llama-3-8b";
        private static final long MAX_BYTES_PER_TOKEN = 1L << 30;

        @Option(
                names = "--model",
                paramLabel = "NAME|PATH",
                description = "Model of the KV and the prefill: llama-3-8b, llama-3-70b, qwen3-32b, deepseek-v3,"
                        + " llama-4-scout, llama-4-maverick, qwen3-next-80b-a3b, qwen3.5-35b-a3b, qwen3.5-397b-a17b,"
                        + " gpt-oss-20b, gpt-oss-120b, gemma-3-12b, gemma-3-27b, deepseek-v4-flash, kimi-k2; or the"
                        + " path of a model's config.json or of its folder. Default where it is needed: llama-3-8b.")
        private String name = "";

        @Option(
                names = "--kv-dtype",
                paramLabel = "TYPE",
                description = "Type of the KV: fp32, fp16, bf16, fp8. Default: as config.json says; bf16 for a preset.")
        private String kvDtype = "";

        @Option(
                names = "--bytes-per-token",
                paramLabel = "N",
                description = "Bytes of KV a token, in place of those of --model, which then says prefill and weights.")
        private @Nullable Long bytesPerToken;

        /// @throws IllegalArgumentException that says what may be
        ModelProfile profile() {
            ModelProfile named = withKvDtype(derived().map(DerivedModel::model).orElseGet(this::preset));
            if (bytesPerToken == null) {
                return named;
            }
            if (bytesPerToken < 1 || bytesPerToken > MAX_BYTES_PER_TOKEN) {
                throw invalidOption("--bytes-per-token", String.valueOf(bytesPerToken), "1 to " + MAX_BYTES_PER_TOKEN);
            }
            if (!kvDtype.isEmpty()) {
                throw invalidOption("--kv-dtype", kvDtype, "absent with --bytes-per-token");
            }
            return named.withKvBytesPerToken(bytesPerToken);
        }

        /// The model, where one was asked for.
        ///
        /// @throws IllegalArgumentException that says what may be
        Optional<ModelProfile> profileIfGiven() {
            return name.isEmpty() && kvDtype.isEmpty() && bytesPerToken == null
                    ? Optional.empty()
                    : Optional.of(profile());
        }

        /// Prints what was derived, and what the bytes of a token leave out.
        void printRemarks(PrintWriter errors) {
            derived().ifPresent(derived -> errors.println("kvcache: " + derived.remark()));
            profile().sequenceRemark().ifPresent(remark -> errors.println("kvcache: " + remark));
            errors.flush();
        }

        private Optional<DerivedModel> derived() {
            if (name.isEmpty() || ModelCatalogue.named(name).isPresent()) {
                return Optional.empty();
            }
            Path file = Files.isDirectory(Path.of(name)) ? Path.of(name).resolve("config.json") : Path.of(name);
            if (!Files.isRegularFile(file)) {
                throw invalidOption(
                        "--model", name, ModelCatalogue.names() + ", or a config.json or its folder; no file " + file);
            }
            return Optional.of(ModelConfigReader.read(file));
        }

        private ModelProfile preset() {
            return ModelCatalogue.named(name.isEmpty() ? DEFAULT_MODEL : name).orElseThrow();
        }

        private ModelProfile withKvDtype(ModelProfile model) {
            return switch (kvDtype.toLowerCase(Locale.ROOT)) {
                case "" -> model;
                case "fp32" -> model.withKvDtype(Dtype.F32);
                case "fp16" -> model.withKvDtype(Dtype.F16);
                case "bf16" -> model.withKvDtype(Dtype.BF16);
                case "fp8" -> model.withKvDtype(Dtype.FP8_E4M3);
                default -> throw invalidOption("--kv-dtype", kvDtype, "fp32, fp16, bf16, fp8");
            };
        }
    }

    /// The option that gives prices.
    static final class PriceOption {

        @Option(
                names = "--price",
                paramLabel = "PRICES",
                description = "Also what memory costs and saves a month, by gpu=N,host=N,disk=N: prices of a GPU-hour,"
                        + " of a GiB-month of host memory and of disk, in any currency.")
        private String prices = "";

        /// @throws IllegalArgumentException that says what may be
        Optional<TierPrices> prices() {
            return prices.isEmpty()
                    ? Optional.empty()
                    : Optional.of(TierPrices.parse(prices)
                            .orElseThrow(() -> invalidOption("--price", prices, TierPrices.FORM)));
        }
    }

    /// The option that names the GPU.
    static final class GpuOption {

        @Option(
                names = "--gpu",
                paramLabel = "NAME|FIGURES",
                defaultValue = "h100",
                description = "GPU that serves the model: a100, h100, h200, b200, l40s, mi300x, or figures as"
                        + " memory=80GB:flops=989e12:link=55GB. Default: ${DEFAULT-VALUE}.")
        private String gpu = "";

        /// @throws IllegalArgumentException that says what may be
        GpuProfile profile() {
            return GpuProfile.find(gpu).orElseThrow(() -> invalidOption("--gpu", gpu, GpuProfile.FORMS));
        }
    }

    /// The options that say which blocks of a trace count.
    static final class HitCountingOptions {

        @Option(
                names = "--rule",
                paramLabel = "RULE",
                defaultValue = "reference",
                description = "reference: every id is a block. full-blocks: as the store does, never a partial block."
                        + " Default: ${DEFAULT-VALUE}.")
        private String rule = "";

        @Option(
                names = "--warmup",
                paramLabel = "N",
                description = "Leading requests that are replayed but not counted. Default: 0.")
        private int warmup;

        /// @throws IllegalArgumentException that says what may be
        BlockCountingRule rule() {
            return parseRule(rule);
        }

        /// @throws IllegalArgumentException when it is below 0
        int warmup() {
            checkWarmup(warmup);
            return warmup;
        }
    }

    /// The option that names capacities as shares of what a trace has, for commands of the laboratory.
    static final class CapacitySharesOption {

        @Option(
                names = "--share",
                paramLabel = "PERCENT",
                split = ",",
                defaultValue = "0.5,1.5,3,6,11,30",
                description = "Capacities in percent of the trace's distinct blocks. Default: ${DEFAULT-VALUE}.")
        private List<String> percents = new ArrayList<>();

        /// The capacities, each above 0 to 1 of the trace's distinct blocks.
        ///
        /// @throws IllegalArgumentException that says what may be
        List<Double> shares() {
            return percents.stream()
                    .map(percent -> parseShare("--share", percent))
                    .toList();
        }
    }

    /// The option that gives measured times.
    static final class CalibrationOption {

        @Spec(Spec.Target.MIXEE)
        private CommandSpec spec = CommandSpec.create();

        @Option(
                names = "--calibrate",
                paramLabel = "FILE",
                description = "Times that lab calibrate has measured, in place of those of model and GPU.")
        private @Nullable Path file;

        boolean isGiven() {
            return file != null;
        }

        /// @throws IllegalArgumentException when the file has none
        Optional<EngineCalibration> calibration() {
            return Optional.ofNullable(file).map(PlanningOptions::readCalibration);
        }

        /// Says whose the times are, and where they are not of what was measured.
        void printRemarks(ModelProfile bytes, Trace trace, PrintWriter errors) {
            calibration().ifPresent(times -> {
                errors.println("kvcache: times are those of " + times.model() + " at " + times.server()
                        + ", bytes those of " + bytes.label());
                long longer = trace.requests().stream()
                        .filter(request -> request.inputTokens() > times.longestPrompt())
                        .count();
                if (longer > 0) {
                    errors.println("kvcache: " + longer + " of "
                            + trace.requests().size() + " prompts of " + trace.name()
                            + " are longer than the longest that was calibrated, " + times.longestPrompt() + " tokens");
                }
                errors.flush();
            });
        }

        /// @throws IllegalArgumentException when one of the options is given
        void requireWithout(String... options) {
            for (String option : options) {
                if (spec.commandLine().getParseResult().hasMatchedOption(option)) {
                    throw new IllegalArgumentException(
                            option + " is given, must be: absent with --calibrate, whose times are measured");
                }
            }
        }
    }

    /// The options that say what the model of an engine computes with.
    static final class EngineOptions {

        @Mixin
        private final ModelOption model = new ModelOption();

        @Mixin
        private final GpuOption gpu = new GpuOption();

        @Option(
                names = "--gpus",
                paramLabel = "N",
                defaultValue = "4",
                description = "Number of these GPUs, at half their peak. Default: ${DEFAULT-VALUE}.")
        private int gpus;

        @Mixin
        private final CalibrationOption calibration = new CalibrationOption();

        /// @throws IllegalArgumentException that says what may be
        EngineHardware hardware() {
            Optional<EngineCalibration> measured = calibration.calibration();
            if (measured.isPresent()) {
                calibration.requireWithout("--gpu", "--gpus");
                return measured.get().hardware(model.profile().kvBytesPerToken());
            }
            if (gpus < 1 || gpus > 1000) {
                throw invalidOption("--gpus", String.valueOf(gpus), "1 to 1000");
            }
            return EngineHardware.of(gpu.profile(), model.profile(), gpus);
        }

        int gpus() {
            return gpus;
        }

        /// `llama-3-8b on 4 h100`, or the measured model and where it was measured.
        String title() {
            Optional<EngineCalibration> measured = calibration.calibration();
            if (measured.isPresent()) {
                return measured.get().model() + " at " + measured.get().server();
            }
            return model.profile().label() + " on " + gpus + " " + gpu.profile().label();
        }

        /// Prints what was derived of the model, and what the bytes of a token leave out.
        void printRemarks(PrintWriter errors) {
            model.printRemarks(errors);
        }

        /// Prints where measured times are not of what was measured.
        void printRemarks(Trace trace, PrintWriter errors) {
            calibration.printRemarks(model.profile(), trace, errors);
        }
    }

    /// The policies that replay a trace.
    static final class PolicyOptions {

        /// Environment variable of the launcher with jars and folders to add to the class path.
        private static final String ADDED_PATH_VARIABLE = "KVCACHE_CLASSPATH";

        @Option(
                names = "--policy",
                paramLabel = "NAME",
                split = ",",
                description = "Policies, separated by commas. Default: all, unless --policy-class is given.")
        private List<String> names = new ArrayList<>();

        @Option(
                names = "--policy-class",
                paramLabel = "CLASS",
                split = ",",
                description =
                        "Also policies of your own, by class: an EvictionPolicy or EvictionPolicyFactory on the class"
                                + " path (KVCACHE_CLASSPATH adds to it). docs/embedding.md shows one.")
        private List<String> classes = new ArrayList<>();

        /// Returns the policies given by name, then those given by class.
        ///
        /// @param defaults names when neither option is given; empty for all policies
        /// @throws IllegalArgumentException when a policy does not exist
        List<SimulatedCache> replays(List<String> defaults) {
            List<SimulatedCache> all = new ArrayList<>();
            if (!names.isEmpty() || classes.isEmpty()) {
                all.addAll(named(names.isEmpty() ? defaults : names));
            }
            classes.forEach(each -> all.add(new PolicyReplay(ofClass(each))));
            return all;
        }

        private static EvictionPolicyFactory ofClass(String name) {
            try {
                return EvictionPolicies.ofClass(name);
            } catch (IllegalArgumentException wrong) {
                boolean missing = wrong.getCause() instanceof ClassNotFoundException;
                throw new IllegalArgumentException(
                        "--policy-class: " + wrong.getMessage()
                                + (missing ? "; " + describeAddedPath(System.getenv(ADDED_PATH_VARIABLE)) : ""),
                        wrong);
            }
        }

        /// Returns where a missing class may come from, and which jars are missing there.
        ///
        /// @param added value of `KVCACHE_CLASSPATH`, or null when it is not set
        static String describeAddedPath(@Nullable String added) {
            if (added == null || added.isEmpty()) {
                return ADDED_PATH_VARIABLE + " is not set: name the jar or folder of the class in it";
            }
            String missing = Arrays.stream(added.split(File.pathSeparator, -1))
                    .filter(entry -> !entry.isEmpty() && !entry.endsWith("*") && !Files.exists(Path.of(entry)))
                    .collect(Collectors.joining(", "));
            return missing.isEmpty()
                    ? ADDED_PATH_VARIABLE + " is '" + added + "': put a jar or folder with the class there"
                    : ADDED_PATH_VARIABLE + " names files that do not exist: " + missing;
        }

        private static List<SimulatedCache> named(List<String> names) {
            if (names.isEmpty()) {
                return ReplayCatalogue.all();
            }
            return names.stream()
                    .map(name -> ReplayCatalogue.named(name)
                            .orElseThrow(() -> invalidOption("--policy", name, ReplayCatalogue.names())))
                    .toList();
        }

        /// The names that were given.
        List<String> names() {
            return List.copyOf(names);
        }
    }

    /// The option that asks for a report with charts beside what a command prints.
    static final class HtmlReportOption {

        @Option(
                names = "--html",
                paramLabel = "FILE",
                description = "Also a report with charts and tables: one HTML file that loads nothing.")
        private @Nullable Path file;

        /// Looks whether the file can be there before hours are spent on what it shows.
        ///
        /// @throws IllegalArgumentException when it cannot
        void checkWritable() {
            PlanningOptions.checkWritable("--html", file);
        }

        /// Returns whether a page was asked for.
        boolean isGiven() {
            return file != null;
        }

        /// Returns what a page of this command is made by.
        ReportOrigin origin(CommandIo io) {
            return new ReportOrigin(
                    "./kvcache " + io.arguments(), Version.text(), MachineInfo.currentCommit(), Instant.now());
        }

        /// Writes the page when one was asked for.
        void write(Supplier<HtmlReport> page) throws IOException {
            if (file != null) {
                page.get().write(file);
            }
        }
    }

    /// `--seeds N`: a planning command over several seeds of a generated trace.
    static final class SeedsOption {

        private static final int MAX_SEEDS = 1000;

        @Option(
                names = "--seeds",
                paramLabel = "N",
                description =
                        "Generate the trace from N seeds, its own and the following, and print the mean of each figure"
                                + " with its 95 %% interval (Student's t). 2 to " + MAX_SEEDS + ".")
        private @Nullable Integer seeds;

        /// Returns whether there are several seeds.
        boolean isGiven() {
            return seeds != null;
        }

        /// Returns the traces to replay: the trace itself, or one of each seed.
        ///
        /// @throws IllegalArgumentException when the number is out of range, or the trace is not made from a
        ///     seed
        List<TraceSource> sources(TraceSource source) {
            Integer count = seeds;
            if (count == null) {
                return List.of(source);
            }
            if (count < 2 || count > MAX_SEEDS) {
                throw PlanningOptions.invalidOption("--seeds", String.valueOf(count), "2 to " + MAX_SEEDS);
            }
            if (!(source instanceof TraceSource.Seeded seeded)) {
                throw new IllegalArgumentException(
                        "--seeds is '" + count + "', must be: left out for a trace that is not made"
                                + " from a seed, as " + source.name()
                                + "; --trace takes generated:SEED, popular:SEED, hostile:SEED,"
                                + " agents:SEED and mixed:SEED with it");
            }
            if (seeded.seed() > Long.MAX_VALUE - count) {
                throw PlanningOptions.invalidOption("--seeds", String.valueOf(count), "within the seeds of 64 bits");
            }
            return LongStream.range(0, count)
                    .<TraceSource>mapToObj(i -> seeded.withSeed(seeded.seed() + i))
                    .toList();
        }

        /// Checks that no report of one run is asked for.
        ///
        /// @throws IllegalArgumentException when it is
        void checkWithout(String option, boolean given) {
            if (given && isGiven()) {
                throw new IllegalArgumentException(
                        "--seeds is '" + seeds + "', must be: left out where " + option + " is given");
            }
        }
    }
}

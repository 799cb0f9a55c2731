package io.kvcache.server.cli;

import io.kvcache.core.DeviceSupport;
import io.kvcache.server.doctor.SystemCheck;
import io.kvcache.server.doctor.SystemCheck.CheckResult;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import tools.jackson.databind.json.JsonMapper;

/// `kvcache doctor`: checks this machine or container for the resources that KVCache uses.
@Command(
        name = "doctor",
        description = "Check this machine for what KVCache uses, and print a fix for every problem.",
        mixinStandardHelpOptions = true,
        sortOptions = false)
final class DoctorCommand implements Callable<Integer> {

    private static final String NO_GPU_MODULE =
            "not asked: to ask it, add the jars kvcache-gpu-bridge and jcuda to the class path";

    private static final int VALUE_COLUMN = 19;

    @Spec
    private CommandSpec spec = CommandSpec.create();

    @Parameters(
            paramLabel = "DIR",
            arity = "0..1",
            description =
                    "Directory for a disk tier: writes and reads 256 MiB there, within seconds, and removes them.")
    private @Nullable Path disk;

    @Option(
            names = "--json",
            description = "Print one JSON object: the checks, fixes below \"advice\", and \"verdict\".")
    private boolean json;

    @Override
    public Integer call() {
        if (disk != null && !Files.isDirectory(disk)) {
            throw new ParameterException(
                    spec.commandLine(), "kvcache doctor: DIR is '" + disk + "', must be an existing directory");
        }
        List<CheckResult> facts = new ArrayList<>(SystemCheck.run(disk));
        List<String> gpus =
                hasHangingDriver(facts) ? List.of("not asked, as nvidia-smi does not answer") : describeGpus();
        for (int ordinal = 0; ordinal < gpus.size(); ordinal++) {
            facts.add(new CheckResult(ordinal == 0 ? "GPU driver" : "GPU " + ordinal, gpus.get(ordinal), ""));
        }
        PrintWriter out = spec.commandLine().getOut();
        if (json) {
            out.println(JsonMapper.builder().build().writeValueAsString(toJson(facts)));
        } else {
            facts.forEach(checkResult -> print(checkResult, out));
            printRow("verdict", verdict(facts), out);
        }
        out.flush();
        return facts.stream().anyMatch(SystemCheck::isUnusableDisk) ? 1 : 0;
    }

    /// A line for each GPU, as far as the module that uses them is there.
    private static List<String> describeGpus() {
        return ServiceLoader.load(DeviceSupport.class).stream()
                .flatMap(probe -> probe.get().describeDevices().stream())
                .collect(Collectors.collectingAndThen(
                        Collectors.toList(), lines -> lines.isEmpty() ? List.of(NO_GPU_MODULE) : lines));
    }

    /// Returns whether the GPU's driver is known to hang. A call into such a driver would not return either.
    private static boolean hasHangingDriver(List<CheckResult> facts) {
        return facts.stream()
                .anyMatch(checkResult -> checkResult.name().equals(SystemCheck.GPU)
                        && !checkResult.advice().isEmpty());
    }

    private void print(CheckResult checkResult, PrintWriter out) {
        printRow(checkResult.name(), checkResult.value(), out);
        if (!checkResult.advice().isEmpty()) {
            out.println(" ".repeat(VALUE_COLUMN) + "do this: " + checkResult.advice()); // whole, to be pasted
        }
    }

    private void printRow(String name, String text, PrintWriter out) {
        String row = String.format(Locale.ROOT, "%-18s %s", name, text);
        out.println(TextWidth.wrap(row, VALUE_COLUMN, spec.commandLine().getUsageHelpWidth()));
    }

    /// No check keeps a server from starting but that of the directory it was asked for.
    static String verdict(List<CheckResult> facts) {
        for (CheckResult each : facts) {
            if (SystemCheck.isUnusableDisk(each)) {
                return "not ready: " + each.name() + " cannot be used, see above";
            }
        }
        List<String> advised = facts.stream()
                .filter(each -> !each.advice().isEmpty())
                .map(CheckResult::name)
                .toList();
        return advised.isEmpty()
                ? "ready to serve, nothing to do"
                : "ready to serve; " + (advised.size() == 1 ? "one check has" : advised.size() + " checks have")
                        + " advice above: " + String.join(", ", advised);
    }

    private static Map<String, Object> toJson(List<CheckResult> facts) {
        Map<String, Object> object = new LinkedHashMap<>();
        Map<String, String> advice = new LinkedHashMap<>();
        for (CheckResult checkResult : facts) {
            object.put(checkResult.name(), checkResult.value());
            if (!checkResult.advice().isEmpty()) {
                advice.put(checkResult.name(), checkResult.advice());
            }
        }
        object.put("advice", advice);
        object.put("verdict", verdict(facts));
        return object;
    }
}

package io.kvcache.server.metrics;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/// The rules that `promtool check metrics` has for a scrape, and that tool itself where it is installed.
public final class MetricLint {

    private static final Path PROMTOOL = Path.of("/usr/bin/promtool");
    private static final Pattern HELP = Pattern.compile("# HELP (\\S+) ?(.*)");
    private static final Pattern TYPE = Pattern.compile("# TYPE (\\S+) (\\S+)");
    private static final Pattern SAMPLE = Pattern.compile("([a-zA-Z_:][\\w:]*)(?:\\{(.*)})? \\S+");
    private static final Pattern ABBREVIATED =
            Pattern.compile("(?:.*_)?(?:s|ms|us|ns|sec|b|kb|mb|gb|tb|pb|m|h|d)(?:_total)?");
    private static final Set<String> OTHER_UNITS = Set.of(
            "milliseconds",
            "microseconds",
            "nanoseconds",
            "minutes",
            "hours",
            "days",
            "kilobytes",
            "kibibytes",
            "megabytes",
            "mibibytes",
            "gigabytes",
            "percent");

    private MetricLint() {}

    /// Returns the problems, one a line; empty when there are none.
    public static List<String> violations(String scrape) throws IOException, InterruptedException {
        List<String> wrong = new ArrayList<>();
        Map<String, String> helps = new HashMap<>();
        Map<String, String> types = new HashMap<>();
        for (String line : scrape.lines().toList()) {
            Matcher help = HELP.matcher(line);
            Matcher type = TYPE.matcher(line);
            Matcher sample = SAMPLE.matcher(line);
            if (help.matches()) {
                helps.put(help.group(1), help.group(2));
            } else if (type.matches()) {
                types.put(type.group(1), type.group(2));
                check(type.group(1), type.group(2), helps, wrong);
            } else if (sample.matches()) {
                check(sample, types, wrong);
            } else if (!line.startsWith("#")) {
                wrong.add("not a sample: " + line);
            }
        }
        if (Files.isExecutable(PROMTOOL)) {
            wrong.addAll(promtool(scrape));
        }
        return wrong;
    }

    private static void check(String name, String type, Map<String, String> helps, List<String> wrong) {
        if (helps.getOrDefault(name, "").isBlank()) {
            wrong.add(name + " has no help text");
        }
        if (type.equals("counter") != name.endsWith("_total")) {
            wrong.add(name + " is a " + type + "; counters, and they alone, end with _total");
        }
        if (!type.equals("histogram") && !type.equals("summary") && name.matches(".*_(count|sum|bucket)")) {
            wrong.add(name + " is a " + type + " and is called like a part of a histogram");
        }
        String unit = name.replaceFirst("_total$", "");
        if (ABBREVIATED.matcher(name).matches() && !name.equals("system_load_average_1m")) {
            wrong.add(name + " has an abbreviated unit");
        }
        if (OTHER_UNITS.contains(unit.substring(unit.lastIndexOf('_') + 1))) {
            wrong.add(name + " is not in base units");
        }
        if (!name.equals(name.toLowerCase(Locale.ROOT)) || name.contains(":")) {
            wrong.add(name + " is not in snake_case");
        }
    }

    private static void check(Matcher sample, Map<String, String> types, List<String> wrong) {
        String name = sample.group(1);
        String family = name.replaceFirst("_(count|sum|bucket)$", "");
        String type = types.getOrDefault(name, types.getOrDefault(family, "unknown"));
        String labels = String.valueOf(sample.group(2));
        if (type.equals("unknown")) {
            wrong.add(name + " has no type");
        }
        if (!type.equals("summary") && labels.matches("(.*,)?quantile=.*")) {
            wrong.add(name + " is a " + type + " and has the label quantile");
        }
        if (!type.equals("histogram") && labels.matches("(.*,)?le=.*")) {
            wrong.add(name + " is a " + type + " and has the label le");
        }
    }

    private static List<String> promtool(String scrape) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(PROMTOOL.toString(), "check", "metrics")
                .redirectErrorStream(true)
                .start();
        try (OutputStream in = process.getOutputStream()) {
            in.write(scrape.getBytes(StandardCharsets.UTF_8));
        }
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return process.waitFor() == 0 ? List.of() : said.lines().toList();
    }
}

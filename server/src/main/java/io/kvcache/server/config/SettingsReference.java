package io.kvcache.server.config;

import io.kvcache.core.policy.EvictionPolicyFactory;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/// The reference of all settings. What each takes and its default come from the code that reads it; the meanings stand
/// in `settings.txt` beside this class.
public final class SettingsReference {

    private static final HostResources MACHINE = new HostResources(64L << 30, 8);

    /// One member of each list, so that their settings are asked for.
    private static final String EXAMPLE = """
            listeners: [{ name: data }]
            tenants: [{ name: NAME }]
            disks: [{ directory: /mnt/nvme0/kvcache, bytes: 1TiB }]
            gpu: [{ device: 0 }]
            domains: [{ name: research }]
            """;

    private static final String WRONG = "\u0001";

    private SettingsReference() {}

    /// A setting.
    ///
    /// @param name as in the file, `[]` for each member of a list
    /// @param takes what it may be
    /// @param defaultText what counts when it is not set
    public record Row(String name, String takes, String defaultText, String meaning) {}

    /// All settings, in the order in which they are read.
    ///
    /// @throws IllegalStateException when one has no meaning in `settings.txt`, or that has another
    public static List<Row> rows() {
        Map<String, Settings.Definition> all = new LinkedHashMap<>();
        for (String file : List.of("", EXAMPLE)) {
            ConfigReader reader = new ConfigReader(MACHINE, Map.of());
            try {
                var _ = reader.read(new ConfigReader.Source("example", file), Map.of());
            } catch (ConfigException incomplete) {
                // its members lack what they need; the settings were asked for all the same
            }
            reader.definitions().forEach(each -> all.putIfAbsent(name(each.path()), each));
        }
        Map<String, String> meanings = meanings();
        if (!meanings.keySet().equals(all.keySet())) {
            throw new IllegalStateException(
                    "settings.txt lacks " + without(all, meanings) + " and has besides " + without(meanings, all));
        }
        List<Row> rows = new ArrayList<>();
        all.forEach((name, each) ->
                rows.add(new Row(name, takes(each), quotedDefault(each), Objects.requireNonNull(meanings.get(name)))));
        return rows;
    }

    private static List<String> without(Map<String, ?> some, Map<String, ?> others) {
        return some.keySet().stream().filter(each -> !others.containsKey(each)).toList();
    }

    /// The reference as a page.
    public static String toMarkdown() {
        StringBuilder page = new StringBuilder("""
                # Configuration reference

                Printed by `./kvcache config settings`; a test compares this page with it. Each setting stands in the YAML file, in the environment as
                `KVCACHE__SECTION__KEY`, or on the command line as `--set section.key=value`; see [the reference](reference.md#settings) for an example.

                - A size is a number of bytes, or a number with KiB, MiB, GiB, TiB (powers of 1024) or KB, MB, GB, TB (powers of 1000); B may follow a plain number. A time is a number with ms, s, m or h, and may be 0 where that means "never" or "at once".
                - `[]` stands for each member of a list, which are counted from 0: `--set gpu.0.device=1`, `KVCACHE__GPU__0__DEVICE=1`. `listen` is the short form of one listener.
                - Defaults that depend on the machine are those of one with 64 GiB of memory and 8 cores.

                | setting | takes | default | meaning |
                |---|---|---|---|
                """);
        rows().forEach(row -> page.append("| `")
                .append(row.name)
                .append("` | ")
                .append(row.takes)
                .append(" | ")
                .append(row.defaultText)
                .append(" | ")
                .append(row.meaning)
                .append(" |\n"));
        return page.toString();
    }

    private static String name(String path) {
        return path.replaceAll("\\.\\d+\\b", "[]");
    }

    private static String takes(Settings.Definition setting) {
        if (setting.defaultValue() instanceof EvictionPolicyFactory) {
            return "lru, importance, or a policy that a jar adds";
        }
        String each = setting.defaultValue() instanceof List ? "list of " : "";
        try {
            var _ = setting.parse().apply(WRONG);
            return each + "text";
        } catch (IllegalArgumentException wrong) {
            String message = String.valueOf(wrong.getMessage()).replaceFirst("^it takes ", "");
            return each
                    + message.replace(Units.SIZE_FORMATS, "size")
                            .replace("0, or " + Units.TIME_FORMATS, "time")
                            .replace("|", "\\|");
        }
    }

    private static String quotedDefault(Settings.Definition setting) {
        String text = defaultText(setting);
        return text.isEmpty() ? "none" : "`" + text + "`";
    }

    /// What counts when a setting is not set; empty for none.
    static String defaultText(Settings.Definition setting) {
        return text(setting.defaultValue(), takes(setting).equals("size"));
    }

    private static String text(@Nullable Object value, boolean bytes) {
        return switch (value) {
            case null -> "";
            case Long size when bytes -> size(size);
            case Duration time -> time(time);
            case Enum<?> constant
            when !(constant instanceof EvictionPolicyFactory) ->
                constant.name().toLowerCase(Locale.ROOT).replace('_', '-');
            case EvictionPolicyFactory policy -> policy.commandName();
            case List<?> list -> list.stream().map(String::valueOf).collect(Collectors.joining(","));
            case Optional<?> none -> none.map(each -> text(each, bytes)).orElse("");
            case Double number when number == 0 -> "";
            case Path path -> path.toString();
            case Record _ -> "";
            default -> value.toString();
        };
    }

    private static String size(long bytes) {
        int unit = bytes == 0 ? 0 : Math.min(4, Long.numberOfTrailingZeros(bytes) / 10);
        return (bytes >>> (10 * unit)) + List.of("", "KiB", "MiB", "GiB", "TiB").get(unit);
    }

    private static String time(Duration time) {
        long millis = time.toMillis();
        if (millis == 0) {
            return "0";
        }
        if (millis % 60_000 == 0) {
            return millis / 60_000 + "m";
        }
        return millis % 1000 == 0 ? millis / 1000 + "s" : millis + "ms";
    }

    private static Map<String, String> meanings() {
        try (InputStream in = Objects.requireNonNull(SettingsReference.class.getResourceAsStream("settings.txt"))) {
            Map<String, String> meanings = new LinkedHashMap<>();
            new String(in.readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .filter(line -> !line.isBlank() && !line.startsWith("#"))
                    .map(line -> line.split(" = ", 2))
                    .forEach(each -> meanings.put(each[0], each[1]));
            return meanings;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}

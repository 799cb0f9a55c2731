package io.kvcache.server.config;

import io.kvcache.server.config.ConfigReader.SettingInForce;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// All settings that were given, by name. Collects mistakes instead of stopping at the first, and reports at the
/// end which names no component reads.
final class Settings {

    private static final Pattern ITEM_INDEX = Pattern.compile("\\.\\d+(\\.|$)");

    /// How YAML says that nothing is there.
    private static final Set<String> NULL_TEXTS = Set.of("", "~", "null");

    private static final Pattern MEMBER = Pattern.compile("(\\w+)\\.(\\d{1,4})(\\..*)?");

    /// Settings that hold secrets themselves, and not the name of a file with them.
    private static final Pattern SECRET = Pattern.compile("tenants\\.\\d+\\.(password_hash|salts(\\.\\d+)?)");

    private static final Pattern NUMBER = Pattern.compile("\\d+");

    /// An example of each list of the configuration, for messages.
    private static final Map<String, String> LIST_FORMATS = Map.of(
            DiskTierConfig.LIST,
            " of DIR:SIZE or of settings, as in disks: [/mnt/nvme0/kvcache:1TiB] or"
                    + " disks: [{ directory: /mnt/nvme0/kvcache, bytes: 1TiB }]",
            GpuConfig.LIST,
            " of DEVICE:SIZE[:MAX] or of settings, as in gpu: [0:40GiB] or gpu: [{ device: 0, bytes: 40GiB }]",
            "listeners",
            " of settings, as in listeners: [{ name: data, address: 127.0.0.1, port: 7379 }]",
            "tenants",
            " of settings, as in tenants: [{ name: blue, password_file: /run/secrets/blue }]",
            "domains",
            " of settings, as in domains: [{ name: research, tenants: [blue, green], host_bytes: 8GiB }]");

    private final Map<String, SettingValue> given = new LinkedHashMap<>();
    private final Set<String> known = new TreeSet<>();
    private final Map<String, Definition> definitions = new LinkedHashMap<>();
    private final Set<String> lists = new TreeSet<>();

    /// Settings that another one sets too, as `disks.0` does `disks.0.bytes`, and that one.
    private final Map<String, String> wholes = new LinkedHashMap<>();
    private final List<String> problems;

    Settings(List<String> problems) {
        this.problems = problems;
    }

    /// A setting that a component asked for.
    ///
    /// @param defaultValue what counts when it is not set
    /// @param parse throws `IllegalArgumentException` that says what it takes
    record Definition(String path, @Nullable Object defaultValue, Function<String, ?> parse) {}

    /// All settings that components asked for, in that order.
    List<Definition> definitions() {
        return List.copyOf(definitions.values());
    }

    /// What counts for each setting that components asked for, in that order; lists that were given, member
    /// by member.
    List<SettingInForce> inForce() {
        List<SettingInForce> all = new ArrayList<>();
        definitions.forEach((path, definition) -> {
            SettingValue value = given.get(path);
            boolean listed = value == null && isAnySet(path);
            if (!listed) {
                SettingValue whole = given.get(wholes.getOrDefault(path, ""));
                all.add(
                        value == null
                                ? new SettingInForce(
                                        path,
                                        SettingsReference.defaultText(definition),
                                        whole == null ? "default" : whole.origin())
                                : new SettingInForce(path, isSecret(path) ? "(hidden)" : value.text(), value.origin()));
            }
        });
        return all;
    }

    /// A setting that is a part of what another one sets at once.
    void notePart(String path, String whole) {
        wholes.put(path, whole);
    }

    private static boolean isSecret(String path) {
        return SECRET.matcher(path).matches();
    }

    private void define(String path, @Nullable Object defaultValue, Function<String, ?> parse) {
        known.add(path);
        definitions.putIfAbsent(path, new Definition(path, defaultValue, parse));
    }

    /// Adds settings; those that are there already give way.
    void add(Map<String, SettingValue> more) {
        given.putAll(more);
    }

    /// Forgets what was given for a list.
    void clear(String list) {
        given.keySet().removeIf(path -> path.startsWith(list + "."));
    }

    /// Returns whether this very path is set.
    boolean isSet(String path) {
        return given.containsKey(path);
    }

    /// The numbers of a list's members, in order.
    Set<Integer> memberIndexes(String list) {
        lists.add(list);
        Set<Integer> members = new TreeSet<>();
        for (String path : given.keySet()) {
            Matcher member = MEMBER.matcher(path);
            if (member.matches() && member.group(1).equals(list)) {
                members.add(Integer.parseInt(member.group(2)));
            }
        }
        return members;
    }

    /// A value, or the default when it is not set or wrong.
    <T> T get(String path, T defaultValue, Function<String, T> parse) {
        define(path, defaultValue, parse);
        SettingValue settingValue = given.get(path);
        if (settingValue == null) {
            return defaultValue;
        }
        try {
            return parse.apply(settingValue.text());
        } catch (IllegalArgumentException mistake) {
            problems.add(
                    settingValue.origin() + ": " + path + " is '" + settingValue.text() + "'; " + mistake.getMessage());
            return defaultValue;
        }
    }

    /// Text without the white space around it.
    String text(String path, String defaultValue) {
        return get(path, defaultValue, String::strip);
    }

    /// Text without the white space around it; null when it is not set or empty.
    @Nullable
    String textOrNull(String path) {
        String text = text(path, "");
        return text.isEmpty() ? null : text;
    }

    boolean flag(String path, boolean defaultValue) {
        return get(path, defaultValue, SettingParsers::parseBoolean);
    }

    /// A whole number; the record that it is for checks its range.
    int integer(String path, int defaultValue, int least, int most) {
        return get(path, defaultValue, SettingParsers.integerParser(least, most));
    }

    long bytes(String path, long defaultValue) {
        return get(path, defaultValue, SettingParsers::parseBytes);
    }

    Duration duration(String path, Duration defaultValue) {
        return get(path, defaultValue, SettingParsers::parseDuration);
    }

    /// A time that is not 0.
    ///
    /// @param range as messages say it, `1s to 60s`
    Duration duration(String path, Duration defaultValue, String range) {
        return get(path, defaultValue, SettingParsers.durationParser(range));
    }

    <E extends Enum<E>> E constant(String path, E defaultValue) {
        return get(path, defaultValue, text -> SettingParsers.parseEnum(defaultValue.getDeclaringClass(), text));
    }

    /// A list of values: one text with commas, or an item each; the default when it is not set or wrong.
    <T> List<T> list(String path, List<T> defaultValue, Function<String, T> parse) {
        List<T> found = new ArrayList<>();
        define(path, defaultValue, parse);
        if (given.containsKey(path)) {
            found.addAll(get(
                    path,
                    List.of(),
                    text -> Arrays.stream(text.split(",", -1))
                            .map(String::strip)
                            .filter(each -> !each.isEmpty())
                            .map(parse)
                            .toList()));
        }
        int items = itemCount(path);
        for (int i = 0; i < items; i++) {
            Optional<T> none = Optional.empty();
            get(path + "." + i, none, text -> Optional.of(parse.apply(text))).ifPresent(found::add);
        }
        return found.isEmpty() ? defaultValue : found;
    }

    /// How many items a list has, counted from 0 without a gap.
    int itemCount(String path) {
        lists.add(path);
        int items = 0;
        while (isAnySet(path + "." + items)) {
            items++;
        }
        return items;
    }

    /// Returns whether this path or one below it is set.
    boolean isAnySet(String path) {
        return given.keySet().stream().anyMatch(each -> each.equals(path) || each.startsWith(path + "."));
    }

    /// Returns whether a setting of this section is set.
    boolean hasSettings(String section) {
        return given.keySet().stream().anyMatch(each -> each.startsWith(section + "."));
    }

    /// Adds to what is wrong.
    void addProblem(String text) {
        problems.add(withOrigin(text));
    }

    /// A problem with the place before it where its setting was set, if that is known.
    String withOrigin(String text) {
        return origin(text) + text;
    }

    /// A record of values, or the default when its checks fail. Each line of the exception's message is a problem.
    <T> T getValid(T defaultValue, Supplier<T> make) {
        try {
            return make.get();
        } catch (IllegalArgumentException mistake) {
            String.valueOf(mistake.getMessage()).lines().forEach(this::addProblem);
            return defaultValue;
        }
    }

    /// Returns the place where the setting at the start of a message was set. For a member of a list, this is the
    /// place of any of its settings.
    private String origin(String message) {
        String path = message.substring(0, Math.max(0, message.indexOf(' ')));
        Matcher member = MEMBER.matcher(path);
        String list = member.matches() ? member.group(1) + "." + member.group(2) : path;
        return given.entrySet().stream()
                .filter(each -> each.getKey().equals(path))
                .findFirst()
                .or(() -> given.entrySet().stream()
                        .filter(each ->
                                each.getKey().equals(list) || each.getKey().startsWith(list + "."))
                        .findFirst())
                .map(each -> each.getValue().origin() + ": ")
                .orElse("");
    }

    /// The names that components have asked for.
    Set<String> known() {
        return Collections.unmodifiableSet(known);
    }

    /// Reports names that no component reads, each mistake once. An empty section or list, as when all of it is
    /// commented out, is fine.
    void reportUnknown() {
        Set<String> told = new HashSet<>();
        given.forEach((path, settingValue) -> {
            boolean nothing = NULL_TEXTS.contains(settingValue.text()) && (isSection(path) || lists.contains(path));
            if (!known.contains(path) && !nothing && told.add(place(path))) {
                problems.add(settingValue.origin() + ": " + unknownSettingMessage(path));
            }
        });
    }

    private String unknownSettingMessage(String path) {
        String outer = path.substring(0, Math.max(0, path.lastIndexOf('.')));
        String list = listOf(path);
        if (!list.isEmpty()) {
            return list + " is " + (list.equals(path) ? "one value" : "settings by name") + "; it takes a list"
                    + LIST_FORMATS.getOrDefault(list, "");
        }
        if (isSection(outer)
                && NUMBER.matcher(path.substring(outer.length() + 1)).matches()) {
            return outer + " is a list; it takes settings by name: " + settingsIn(outer);
        }
        if (isOneValue(outer)) {
            return outer + " takes one value";
        }
        if (isSection(path)) {
            return path + " takes settings below it: " + settingsIn(path);
        }
        String name = place(path);
        Set<String> names = new TreeSet<>(known);
        names.addAll(lists);
        return "there is no setting " + name
                + DidYouMean.findNearest(name, names)
                        .map(nearest -> "; is it " + nearest + "?")
                        .orElseGet(() -> "; there are " + settingsIn(section(name)));
    }

    /// The list that was given in another form: as one value, or as settings by name; else empty.
    private String listOf(String path) {
        return lists.stream()
                .filter(each -> !known.contains(each))
                .filter(each -> path.equals(each)
                        || (path.startsWith(each + ".")
                                && !ITEM_INDEX
                                        .matcher(path.substring(each.length()))
                                        .lookingAt()))
                .findFirst()
                .orElse("");
    }

    /// One mistake about an unknown list stands for all of its items.
    private String place(String path) {
        String list = listOf(path);
        if (!list.isEmpty()) {
            return list;
        }
        Matcher item = ITEM_INDEX.matcher(path);
        return item.find() && !lists.contains(path.substring(0, item.start())) ? path.substring(0, item.start()) : path;
    }

    /// The outermost part of a name when it is a section, else nothing.
    private String section(String path) {
        String first = path.substring(0, Math.max(0, path.indexOf('.')));
        return isSection(first) ? first : "";
    }

    private boolean isSection(String path) {
        return !path.isEmpty() && known.stream().anyMatch(each -> each.startsWith(path + "."));
    }

    /// The settings of a section, or the names of all sections with what is in none.
    private String settingsIn(String section) {
        return Stream.concat(known.stream(), lists.stream())
                .filter(each -> section.isEmpty() || each.startsWith(section + "."))
                .map(each -> section.isEmpty() ? each.replaceFirst("\\..*", "") : each)
                .distinct()
                .sorted()
                .collect(Collectors.joining(", "));
    }

    private boolean isOneValue(String path) {
        return known.contains(path) && known.stream().noneMatch(each -> each.startsWith(path + "."));
    }

    /// A text that was given for a setting, and where.
    ///
    /// @param origin as it is shown to people: `kvcache.yaml:12`, `KVCACHE__LISTEN__PORT`, `--port`
    record SettingValue(String text, String origin) {}
}

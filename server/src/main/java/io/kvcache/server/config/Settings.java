package io.kvcache.server.config;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.function.Supplier;

/// What was set, asked for by name. Collects what is wrong instead of stopping at the first mistake, and knows at the
/// end which names nobody asked for.
final class Settings {

    private final Map<String, Setting> given = new LinkedHashMap<>();
    private final Set<String> known = new TreeSet<>();
    private final List<String> problems;

    Settings(List<String> problems) {
        this.problems = problems;
    }

    /// Adds settings; those that are there already give way.
    void add(Map<String, Setting> more) {
        given.putAll(more);
    }

    /// A value, or the default when it is not set or wrong.
    <T> T get(String path, T otherwise, Function<String, T> parse) {
        known.add(path);
        Setting setting = given.get(path);
        if (setting == null) {
            return otherwise;
        }
        try {
            return parse.apply(setting.text());
        } catch (IllegalArgumentException mistake) {
            problems.add(setting.origin() + ": " + path + " is '" + setting.text() + "'; " + mistake.getMessage());
            return otherwise;
        }
    }

    /// A record of values, or the default when its checks fail.
    <T> T checked(T otherwise, Supplier<T> make) {
        try {
            return make.get();
        } catch (IllegalArgumentException mistake) {
            String message = String.valueOf(mistake.getMessage());
            problems.add(origin(message) + message);
            return otherwise;
        }
    }

    /// Where the setting was set that a message begins with.
    private String origin(String message) {
        String path = message.substring(0, Math.max(0, message.indexOf(' ')));
        Setting setting = given.get(path);
        return setting == null ? "" : setting.origin() + ": ";
    }

    /// Names that no component knows are mistakes.
    void reportUnknown() {
        given.forEach((path, setting) -> {
            if (!known.contains(path)) {
                problems.add(setting.origin() + ": there is no setting " + path
                        + Suggestion.nearest(path, known)
                                .map(nearest -> "; is it " + nearest + "?")
                                .orElse("; there are " + String.join(", ", known)));
            }
        });
    }
}

package io.kvcache.server.config;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;

/// Reads `KVCACHE__SECTION__KEY` from the environment.
///
/// With two underscores, so that what Kubernetes adds for a service named kvcache — `KVCACHE_PORT`,
/// `KVCACHE_SERVICE_HOST` — is not taken for a setting.
final class EnvironmentSettings {

    private static final String PREFIX = "KVCACHE__";
    private static final String SHORT_PREFIX = "KVCACHE_";

    private EnvironmentSettings() {}

    /// Settings by path, in order of their names.
    static Map<String, SettingValue> read(Map<String, String> environment) {
        Map<String, SettingValue> settings = new LinkedHashMap<>();
        new TreeMap<>(environment).forEach((name, text) -> {
            if (name.startsWith(PREFIX)) {
                settings.put(path(name, PREFIX), new SettingValue(text, name));
            }
        });
        return settings;
    }

    /// Says which variables set nothing for want of an underscore.
    static void reportMissingUnderscore(
            Map<String, String> environment, Predicate<String> known, List<String> problems) {
        for (String name : new TreeSet<>(environment.keySet())) {
            if (name.startsWith(SHORT_PREFIX) && !name.startsWith(PREFIX) && known.test(path(name, SHORT_PREFIX))) {
                problems.add(name + " sets nothing; is it " + PREFIX + name.substring(SHORT_PREFIX.length()) + "?");
            }
        }
    }

    private static String path(String name, String prefix) {
        return name.substring(prefix.length()).toLowerCase(Locale.ROOT).replace("__", ".");
    }
}

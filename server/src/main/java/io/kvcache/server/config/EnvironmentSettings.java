package io.kvcache.server.config;

import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/// Reads `KVCACHE__SECTION__KEY` from the environment.
///
/// With two underscores, so that what Kubernetes adds for a service named kvcache — `KVCACHE_PORT`,
/// `KVCACHE_SERVICE_HOST` — is not taken for a setting.
final class EnvironmentSettings {

    private static final String PREFIX = "KVCACHE__";

    private EnvironmentSettings() {}

    /// Settings by path, in order of their names.
    static Map<String, Setting> read(Map<String, String> environment) {
        Map<String, Setting> settings = new LinkedHashMap<>();
        new TreeMap<>(environment).forEach((name, text) -> {
            if (name.startsWith(PREFIX)) {
                String path =
                        name.substring(PREFIX.length()).toLowerCase(Locale.ROOT).replace("__", ".");
                settings.put(path, new Setting(text, name));
            }
        });
        return settings;
    }
}

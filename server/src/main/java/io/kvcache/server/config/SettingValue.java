package io.kvcache.server.config;

/// A text that was given for a setting, and where.
///
/// @param origin as it is shown to people: `kvcache.yaml:12`, `KVCACHE__LISTEN__PORT`, `--port`
record SettingValue(String text, String origin) {}

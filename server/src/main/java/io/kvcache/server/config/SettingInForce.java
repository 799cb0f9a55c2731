package io.kvcache.server.config;

/// A setting as it counts for a running server.
///
/// @param name as in the file, `memory.host_bytes`
/// @param value as it was given, or the default; never a secret
/// @param source where it was given, `kvcache.yaml:12`, `KVCACHE__LISTEN__PORT` or `--port`; `default` when
///     it was not
public record SettingInForce(String name, String value, String source) {}

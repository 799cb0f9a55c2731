package io.kvcache.server.config;

/// When the pages of host memory are touched for the first time, which can cost a second a GiB.
public enum PrefaultMode {
    /// By a thread, while the server serves.
    BACKGROUND,
    /// Before the server listens.
    BEFORE_READY,
    /// By whoever needs them first.
    OFF
}

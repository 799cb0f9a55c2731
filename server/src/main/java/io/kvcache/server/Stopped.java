package io.kvcache.server;

/// What became of a server's requests and values when it went down.
///
/// @param answered whether all requests that had begun were answered
/// @param saved whether all values are on disk; true when there is no disk
/// @param unsavedBytes of values that are not
public record Stopped(boolean answered, boolean saved, long unsavedBytes) {}

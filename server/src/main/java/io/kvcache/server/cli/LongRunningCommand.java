package io.kvcache.server.cli;

/// Marks a command that serves until it is stopped, and so has a log of its own.
///
/// For every other command the command line logs warnings only, between the command's own output.
public interface LongRunningCommand {}

package io.kvcache.bench.server;

/// What a number answers.
///
/// @param name short, for a table and for records
/// @param text in words
/// @param unit of the number and of what it is held against
record MetricSpec(String name, String text, String unit) {}

package io.kvcache.bench.transport;

/// One cargo, moved by both.
///
/// @param ratio median of the rounds' ratios of ours to the other's
public record TransportCell(Cargo cargo, Moves ours, Moves bare, double ratio, Cost cost, Cost bareCost) {}

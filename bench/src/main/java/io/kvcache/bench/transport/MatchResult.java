package io.kvcache.bench.transport;

/// How long it takes to ask how much of a chain is there.
///
/// @param by what carries the question: `tcp`, `aeron`, `shared`
/// @param told whether the other side knew the chain from an earlier question, so that no key had to be sent
public record MatchResult(String by, boolean told, TransferStats moves, ResourceUsage cost) {}

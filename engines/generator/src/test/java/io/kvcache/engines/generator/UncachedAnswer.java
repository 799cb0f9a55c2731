package io.kvcache.engines.generator;

/// What a model says by itself, without any store.
///
/// @param tokens greedy ones
/// @param logits after the prompt
@SuppressWarnings("ArrayRecordComponent")
public record UncachedAnswer(int[] tokens, float[] logits) {}

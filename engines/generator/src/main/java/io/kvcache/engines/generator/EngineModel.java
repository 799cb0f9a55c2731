package io.kvcache.engines.generator;

import io.kvcache.core.identity.Namespace;

/// A model that an engine has loaded, as a [PrefixCachedGenerator] needs it.
///
/// **Threads.** Any, for what it says of itself. Of its sequences, one is computed at a time.
public interface EngineModel {

    /// Returns the namespace of its blocks. It differs between models whose blocks differ: by weights, engine,
    /// build, type, shape, positions, tenant and salt.
    ///
    /// @param blockTokens tokens in a block
    /// @param tenant whose blocks these are; may be empty
    /// @param salt keeps users of a tenant apart; may be empty
    Namespace namespace(int blockTokens, String tenant, String salt);

    /// Returns the values that make up the namespace, for logs.
    Record fingerprint();

    /// Tokens that a sequence may have.
    int contextLength();

    /// Tokens there are, numbered from 0.
    int vocabulary();

    /// How far an element may be from the same one computed again: this much, and this share of it. 0 where
    /// equal tokens give equal bits, however they are cut into batches.
    double tolerance();

    /// Returns whether blocks with tokens of an answer are stored too. An answer's tokens are computed one by one.
    /// Where that gives other bits than computing them together, the next prompt that continues from the answer
    /// computes them together, once, and from then on they are stored.
    boolean storesAnswers();

    /// A sequence without tokens. The caller closes it.
    ///
    /// @param blockTokens tokens in a block
    /// @param temperature 0 takes the likeliest token
    /// @param seed decides what is drawn at a temperature above 0
    EngineSequence newSequence(int blockTokens, float temperature, long seed);
}

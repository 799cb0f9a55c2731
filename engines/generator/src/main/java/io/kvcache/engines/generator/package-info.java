/// The common part of every inference engine with a [io.kvcache.core.KvCache] before its prefill:
/// `PrefixCachedGenerator` takes the state of a prompt's beginning from the store, has the rest computed,
/// and stores what is new. An engine's adapter is an `EngineModel`, whose sequences are `EngineSequence`s
/// that let blocks in and out. A `TextModel` has a tokenizer besides, and a `TextAnswer` is the text that
/// it makes.
///
/// May import `io.kvcache.core`; no implementation of `KvCache`, and no engine.
@NullMarked
package io.kvcache.engines.generator;

import org.jspecify.annotations.NullMarked;

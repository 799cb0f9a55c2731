/// The block hashes of other engines, bit for bit: [io.kvcache.core.engine.VllmBlockHash] and
/// [io.kvcache.core.engine.SglangBlockHash]. [io.kvcache.core.engine.EngineValueKey] finds such a hash in a key.
///
/// A store never computes them: an engine hands its keys over and they stay opaque bytes. A caller that sees tokens
/// and must predict an engine's keys does: a router, an indexer of its events, the trace replay. The package may
/// import `hash` and `identity` and nothing else of the store.
@NullMarked
package io.kvcache.core.engine;

import org.jspecify.annotations.NullMarked;

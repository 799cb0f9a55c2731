/// Engines in other processes: they name their own KV pool in the device's memory, and have blocks brought
/// there and taken from there without a copy of their own.
///
/// [io.kvcache.gpu.engine.EngineIpcServer] waits at a unix socket; ENGINES.md has what goes over it, for
/// engines in any language.
///
/// May import `io.kvcache.core`, `io.kvcache.gpu.driver` and `io.kvcache.gpu.paging`.
@NullMarked
package io.kvcache.gpu.engine;

import org.jspecify.annotations.NullMarked;

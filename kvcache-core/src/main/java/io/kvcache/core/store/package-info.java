/// The store's metadata as one state machine: which record holds which slot, what is findable, what has to go.
///
/// [io.kvcache.core.store.HostStore] is its face. Callers move the bytes; nothing here copies a block under the
/// lock. No thread, no clock, no I/O: time comes in as arguments where it matters.
@NullMarked
package io.kvcache.core.store;

import org.jspecify.annotations.NullMarked;

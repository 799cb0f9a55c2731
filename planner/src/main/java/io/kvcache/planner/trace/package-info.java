/// Request traces: [io.kvcache.planner.trace.Trace], a reader of several formats, a generator, and where to
/// find files.
///
/// A trace knows block identities and lengths only, no tokens. It may import nothing of the store.
@NullMarked
package io.kvcache.planner.trace;

import org.jspecify.annotations.NullMarked;

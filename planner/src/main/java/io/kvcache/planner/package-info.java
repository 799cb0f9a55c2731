/// Planning a deployment: traces of requests, their replay under the store's policies and those of others,
/// and what models,
/// GPUs and memory make of the hits. Its commands are `replay`, `lab`, `size` and `trace`.
///
/// Stands on the server, whose command line it extends. May import neither JMH nor `io.kvcache.bench`, which
/// stands on it.
@NullMarked
package io.kvcache.planner;

import org.jspecify.annotations.NullMarked;

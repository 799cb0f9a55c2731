/// Content that can be checked: [io.kvcache.core.check.BlockContent] derives the bytes of a block from its key, so a
/// reader that knows the key can verify every byte. Replays, simulations, benchmarks and the tests of embedders use it.
///
/// [io.kvcache.core.check.Preconditions] are the arguments that caches refuse, with the same messages everywhere.
///
/// May import `io.kvcache.core`, `io.kvcache.core.identity` and the JDK only.
@NullMarked
package io.kvcache.core.check;

import org.jspecify.annotations.NullMarked;

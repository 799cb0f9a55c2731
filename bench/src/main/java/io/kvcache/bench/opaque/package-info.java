/// Traces replayed as LMCache does, through a server that sees opaque objects, beside the same
/// blocks in a store that knows their chains.
@NullMarked
package io.kvcache.bench.opaque;

import org.jspecify.annotations.NullMarked;

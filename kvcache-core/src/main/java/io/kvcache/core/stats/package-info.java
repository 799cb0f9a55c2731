/// Statistics of one part of a store: what disks hold, what was read ahead, which blocks and objects there are.
///
/// Immutable values. May import `identity` and `tier`.
@NullMarked
package io.kvcache.core.stats;

import org.jspecify.annotations.NullMarked;

/// Settings of an embedded store that have parts of their own: its memory, the memory that clients write into, and
/// disks that hold something else.
@NullMarked
package io.kvcache.tiers.options;

import org.jspecify.annotations.NullMarked;

/// Replays that are killed while they write to a disk tier, and what the next opening finds.
@NullMarked
package io.kvcache.bench.crash;

import org.jspecify.annotations.NullMarked;

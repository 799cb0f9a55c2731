/// Tests of the baseline policies.
@NullMarked
package io.kvcache.bench.baseline;

import org.jspecify.annotations.NullMarked;

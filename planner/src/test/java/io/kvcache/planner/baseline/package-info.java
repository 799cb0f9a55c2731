/// Tests of the baseline policies.
@NullMarked
package io.kvcache.planner.baseline;

import org.jspecify.annotations.NullMarked;

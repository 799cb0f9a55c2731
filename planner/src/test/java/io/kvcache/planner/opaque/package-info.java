/// Tests of the laboratory.
@NullMarked
package io.kvcache.planner.opaque;

import org.jspecify.annotations.NullMarked;

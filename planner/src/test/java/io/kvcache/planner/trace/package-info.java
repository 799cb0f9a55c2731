/// Tests of reading, generating and finding traces.
@NullMarked
package io.kvcache.planner.trace;

import org.jspecify.annotations.NullMarked;

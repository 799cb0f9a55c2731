/// Tests of the policies: one contract for all, and naive models to compare with.
@NullMarked
package io.kvcache.core.policy;

import org.jspecify.annotations.NullMarked;

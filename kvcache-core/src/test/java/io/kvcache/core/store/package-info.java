/// Tests of the store's metadata: examples, a naive model with random operations, and threads against real
/// bytes.
@NullMarked
package io.kvcache.core.store;

import org.jspecify.annotations.NullMarked;

/// Tests of the scripts at the root of the repository.
@NullMarked
package io.kvcache.bench.launcher;

import org.jspecify.annotations.NullMarked;

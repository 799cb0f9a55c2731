/// Tests of the comparison of builds.
@NullMarked
package io.kvcache.bench.suite;

import org.jspecify.annotations.NullMarked;

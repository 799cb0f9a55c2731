/// Tests of figures and budgets.
@NullMarked
package io.kvcache.bench.figure;

import org.jspecify.annotations.NullMarked;

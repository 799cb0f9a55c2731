/// Tests of the laboratory.
@NullMarked
package io.kvcache.bench.lab;

import org.jspecify.annotations.NullMarked;

/// Tests of the adapter, over models of random weights that `RandomLlama` writes.
@NullMarked
package io.kvcache.engines.jlama;

import org.jspecify.annotations.NullMarked;

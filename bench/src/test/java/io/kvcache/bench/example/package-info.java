/// What the documents show in code, compiled and tested.
@NullMarked
package io.kvcache.bench.example;

import org.jspecify.annotations.NullMarked;

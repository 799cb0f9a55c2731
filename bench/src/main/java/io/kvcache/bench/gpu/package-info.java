/// How fast blocks get to a GPU and back, beside copies that do nothing else.
@NullMarked
package io.kvcache.bench.gpu;

import org.jspecify.annotations.NullMarked;

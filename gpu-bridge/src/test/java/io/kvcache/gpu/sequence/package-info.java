@NullMarked
package io.kvcache.gpu.sequence;

import org.jspecify.annotations.NullMarked;

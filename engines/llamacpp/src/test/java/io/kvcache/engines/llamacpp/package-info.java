/// Tests.
@NullMarked
package io.kvcache.engines.llamacpp;

import org.jspecify.annotations.NullMarked;

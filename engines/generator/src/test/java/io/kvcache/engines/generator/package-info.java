/// What holds for every engine with a store before its prefill, for their tests to extend.
@NullMarked
package io.kvcache.engines.generator;

import org.jspecify.annotations.NullMarked;

/// Running the tests of this module where there is no Maven.
@NullMarked
package io.kvcache.gpu.kit;

import org.jspecify.annotations.NullMarked;

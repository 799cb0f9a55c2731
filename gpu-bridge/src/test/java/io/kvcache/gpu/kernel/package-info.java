/// Every kernel against a reference in float64 or of the JDK's, and the text that is loaded against its
/// source.
@NullMarked
package io.kvcache.gpu.kernel;

import org.jspecify.annotations.NullMarked;

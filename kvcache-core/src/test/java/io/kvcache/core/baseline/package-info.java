/// Recorded behaviour from before a refactoring, and the comparison with the present behaviour.
@NullMarked
package io.kvcache.core.baseline;

import org.jspecify.annotations.NullMarked;

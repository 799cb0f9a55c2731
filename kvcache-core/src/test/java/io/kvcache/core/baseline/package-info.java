/// What the code did before a change that must not alter it, and the comparison with what it does now.
@NullMarked
package io.kvcache.core.baseline;

import org.jspecify.annotations.NullMarked;

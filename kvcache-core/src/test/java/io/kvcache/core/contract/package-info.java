/// What every [io.kvcache.core.KvCache] must do, as suites that an implementation's tests extend, and the
/// content of blocks that makes every returned byte checkable.
///
/// Published in the test-jar. Uses the public interface only.
@NullMarked
package io.kvcache.core.contract;

import org.jspecify.annotations.NullMarked;

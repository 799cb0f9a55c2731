/// Contract of every [io.kvcache.core.KvCache], as suites that an implementation's tests extend. Blocks hold
/// [io.kvcache.core.check.BlockContent], so every returned byte is checked.
///
/// Published in the test-jar. Uses the public interface only.
@NullMarked
package io.kvcache.core.contract;

import org.jspecify.annotations.NullMarked;

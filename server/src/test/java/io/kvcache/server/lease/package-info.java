@NullMarked
package io.kvcache.server.lease;

import org.jspecify.annotations.NullMarked;

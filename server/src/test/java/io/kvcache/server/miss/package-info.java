@NullMarked
package io.kvcache.server.miss;

import org.jspecify.annotations.NullMarked;

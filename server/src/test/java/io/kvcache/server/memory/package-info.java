@NullMarked
package io.kvcache.server.memory;

import org.jspecify.annotations.NullMarked;

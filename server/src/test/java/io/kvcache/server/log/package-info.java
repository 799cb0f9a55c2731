@NullMarked
package io.kvcache.server.log;

import org.jspecify.annotations.NullMarked;

@NullMarked
package io.kvcache.server.lm;

import org.jspecify.annotations.NullMarked;

@NullMarked
package io.kvcache.server.forward;

import org.jspecify.annotations.NullMarked;

@NullMarked
package io.kvcache.server.quota;

import org.jspecify.annotations.NullMarked;

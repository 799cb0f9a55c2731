@NullMarked
package io.kvcache.server.event;

import org.jspecify.annotations.NullMarked;

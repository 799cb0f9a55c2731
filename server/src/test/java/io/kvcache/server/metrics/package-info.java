@NullMarked
package io.kvcache.server.metrics;

import org.jspecify.annotations.NullMarked;

@NullMarked
package io.kvcache.bench.server;

import org.jspecify.annotations.NullMarked;

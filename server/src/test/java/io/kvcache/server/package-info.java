@NullMarked
package io.kvcache.server;

import org.jspecify.annotations.NullMarked;

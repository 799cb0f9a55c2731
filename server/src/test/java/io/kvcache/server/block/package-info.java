@NullMarked
package io.kvcache.server.block;

import org.jspecify.annotations.NullMarked;

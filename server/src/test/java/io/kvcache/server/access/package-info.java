@NullMarked
package io.kvcache.server.access;

import org.jspecify.annotations.NullMarked;

@NullMarked
package io.kvcache.server.console;

import org.jspecify.annotations.NullMarked;

@NullMarked
package io.kvcache.server.program;

import org.jspecify.annotations.NullMarked;

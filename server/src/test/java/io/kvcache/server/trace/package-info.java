/// Tests of what a server says of its use.
@NullMarked
package io.kvcache.server.trace;

import org.jspecify.annotations.NullMarked;

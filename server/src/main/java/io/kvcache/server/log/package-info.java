/// How the server's log looks. Knows java.util.logging, nothing of the server.
@NullMarked
package io.kvcache.server.log;

import org.jspecify.annotations.NullMarked;

/// What memory a server needs, and what there is. Knows the operating system's files, not the server's parts.
@NullMarked
package io.kvcache.server.memory;

import org.jspecify.annotations.NullMarked;

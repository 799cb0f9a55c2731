/// The memory that a server needs, and the memory of the machine. Knows the operating system's files, not the
/// server's parts.
@NullMarked
package io.kvcache.server.memory;

import org.jspecify.annotations.NullMarked;

/// Reading another process's store in place: its slots and its index, mapped read-only.
///
/// [io.kvcache.transport.shm.SharedStore] maps the files and knows for how long; its look-ups and copies
/// send nothing. [io.kvcache.transport.shm.StagingMemory] is what a client writes into, for the server to copy
/// from. Nothing here opens a socket: which files to map is told over a connection.
@NullMarked
package io.kvcache.transport.shm;

import org.jspecify.annotations.NullMarked;

/// Where blocks and objects belong among several servers: a function of their keys and of a list of servers.
///
/// [io.kvcache.transport.cluster.BlockGroups] cuts chains into groups,
/// [io.kvcache.transport.cluster.Placement] ranks servers for a group, and
/// [io.kvcache.transport.cluster.HashSlots] assigns objects. PROTOCOL.md describes the same for other languages.
///
/// No I/O, no clock, no thread. May import `io.kvcache.core` alone.
@NullMarked
package io.kvcache.transport.cluster;

import org.jspecify.annotations.NullMarked;

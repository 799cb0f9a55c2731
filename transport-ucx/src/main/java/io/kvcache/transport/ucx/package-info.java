/// One-sided reads over whatever fabric UCX finds: InfiniBand and RoCE, shared memory, or TCP.
///
/// [io.kvcache.transport.ucx.UcxMemory] offers a store's slots, [io.kvcache.transport.ucx.UcxReader] reads them
/// from another process. A connection of the protocol reports which block lies where, and for how long. This
/// package does not know blocks.
///
/// UCX is a C library that may be missing: it is loaded at the first use, and its absence is an `IOException`
/// that says so. Its structures are those of version 1.13 and later ones.
///
/// **Trust.** UCX checks nothing on the way: over TCP and shared memory its server does what a peer asks for, reads
/// and writes alike, at any address. So trust any process that can reach one that offers memory as much as that
/// process. It is opened only on request, and over the networks that the request names.
@NullMarked
package io.kvcache.transport.ucx;

import org.jspecify.annotations.NullMarked;

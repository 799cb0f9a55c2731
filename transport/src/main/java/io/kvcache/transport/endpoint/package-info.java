/// The serving side: any `KvCache` made reachable for other processes.
///
/// [io.kvcache.transport.endpoint.Endpoint] holds the sessions; each connection is a conversation that
/// hears frames and answers through its outlet. Leases and reservations belong to a session and end with
/// it, at the latest when the client has not been heard of for as long as it was promised. Time comes
/// from outside, and no socket is known here.
@NullMarked
package io.kvcache.transport.endpoint;

import org.jspecify.annotations.NullMarked;

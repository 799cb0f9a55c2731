/// Leases on values: clients on the same host read them in place, as SageMaker HyperPod's protocol has
/// it.
///
/// [io.kvcache.server.lease.LeaseEndpoint] is what a listener serves, [io.kvcache.server.lease.Leases] what
/// is leased.
///
/// May not import another protocol.
@NullMarked
package io.kvcache.server.lease;

import org.jspecify.annotations.NullMarked;

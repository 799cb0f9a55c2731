/// A network in memory with bad weather, for the production endpoint and client.
///
/// [io.kvcache.transport.sim.SimNetwork] connects them through the same seams as TCP does. A seed decides
/// what the weather does and what clients ask for. It does not decide how threads meet: the client has
/// threads of its own, which wait by the clock of the machine, so two runs of a seed do not end alike.
@org.jspecify.annotations.NullMarked
package io.kvcache.transport.sim;

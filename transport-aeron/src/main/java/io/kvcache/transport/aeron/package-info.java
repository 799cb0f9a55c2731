/// Aeron under the links: frames go through shared memory on one host (`aeron:ipc`) or over UDP
/// (`aeron:udp`), written into claimed terms straight from their slots and read straight into theirs.
///
/// [io.kvcache.transport.aeron.AeronEndpoint] serves, [io.kvcache.transport.aeron.AeronConnector] connects. A
/// connection is a pair of streams: the client's, which every connection begins on stream
/// [io.kvcache.transport.aeron.AeronConnector.ConnectMessage#STREAM] of the server's channel, each an image of its
/// own there; and the one back, whose number and port the first message names.
///
/// No other package may import `io.aeron` or `org.agrona`, and nothing here may be loaded but for an `aeron:`
/// address: Agrona needs a flag of the JVM that others do without.
@NullMarked
package io.kvcache.transport.aeron;

import org.jspecify.annotations.NullMarked;

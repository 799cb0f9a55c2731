package io.kvcache.server.metrics;

import static java.util.Map.entry;

import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.config.MeterFilter;
import java.util.Map;

/// What the server's meters count, in a line, for who reads the numbers and not the code: the text after `# HELP`.
/// Meters of the store bring their own.
final class MeterDescriptions implements MeterFilter {

    private static final Map<String, String> DESCRIPTIONS = Map.ofEntries(
            entry("kv.blocks", "Blocks that a tenant with a quota has."),
            entry("kv.blocks.evicted", "Blocks that went because of their tenant's quota."),
            entry("kv.blocks.reads", "Single blocks asked for over HTTP, by result; results as of kv_reads_total."),
            entry("kv.blocks.refused", "Blocks for which their tenant's quota had no room."),
            entry("kv.blocks.used", "Bytes of blocks of a tenant with a quota, a part of kv_used_bytes."),
            entry("kv.connections.closed", "Connections that ended, by reason; bug and too_many need somebody."),
            entry("kv.connections.open", "Connections that are open."),
            entry("kv.dropped", "Values without room whose client was told nothing of that, as its protocol cannot."),
            entry("kv.endpoint.begun", "Sessions, leases and reservations of other JVMs, ever."),
            entry("kv.endpoint.closed", "Connections of other JVMs that ended, by reason."),
            entry("kv.endpoint.connections", "Connections of other JVMs that are open."),
            entry("kv.endpoint.corrupt", "Payloads that came without their checksum."),
            entry("kv.endpoint.expired", "Sessions, leases and reservations that ended as their client was gone."),
            entry("kv.endpoint.handshakes.refused", "Other JVMs that were not let in, by reason."),
            entry("kv.endpoint.held", "Leases and reservations that other JVMs hold of the store."),
            entry("kv.endpoint.received", "Bytes of blocks and objects that other JVMs sent."),
            entry("kv.endpoint.refusals", "Requests of other JVMs that were answered by an error."),
            entry("kv.endpoint.requests", "Requests of other JVMs."),
            entry("kv.endpoint.sent", "Bytes of blocks and objects that were sent to other JVMs."),
            entry("kv.endpoint.sessions", "Sessions of other JVMs that are open."),
            entry("kv.endpoint.waiting", "Requests of other JVMs that wait for room, a disk or a flush."),
            entry("kv.events.asked", "Questions to the replay socket that were answered."),
            entry("kv.events.overrun", "Times that events came faster than they could be published."),
            entry("kv.events.published", "Messages that were published over ZeroMQ."),
            entry("kv.evicted", "Values of a tenant that went, by cause: its quota, or room for others."),
            entry("kv.flight", "Bytes of values that are on their way now, in or out."),
            entry("kv.flight.most", "Bytes of values that may be on their way, in or out."),
            entry("kv.keys", "Keys of a tenant that are known."),
            entry("kv.leases", "Leases of processes that read in place."),
            entry("kv.leases.expired", "Leases that were not released in time."),
            entry("kv.leases.held", "Bytes that are leased."),
            entry("kv.left.to.compute", "Values on disk that look-ups were not told of, as they are computed sooner."),
            entry("kv.logins", "Log-ins by outcome; later: not looked at, after too many wrong ones."),
            entry(
                    "kv.promises",
                    "EXISTS of what is here, by kind; broken: gone when read; kept: it was read; declined: answered with no."),
            entry("kv.promises.held", "Bytes that stay because EXISTS said that they are there."),
            entry("kv.quota", "Bytes that a tenant may have; 0 for no limit."),
            entry(
                    "kv.reads",
                    "Values looked up by EXISTS, GET and HEAD, by tenant and result; a GET after an EXISTS that said yes"
                            + " counts with it. The hit rate is hit of all."),
            entry("kv.reads.from.disk", "Values that reads found on disk and not in memory, a part of the hits."),
            entry("kv.received", "Bytes of values that were stored."),
            entry("kv.refusals", "Requests that were answered by an error."),
            entry("kv.requests", "Requests by protocol."),
            entry("kv.sent", "Bytes of values that were found."),
            entry(
                    "kv.tls.certificate.expiry",
                    "When the certificate of a listener ends, in seconds since 1970; of a chain, the first to end."),
            entry("kv.trace.capturing", "1 while the trace is written, 0 when its file is full or cannot be written."),
            entry("kv.trace.dropped", "Uses that came faster than the trace could be written."),
            entry("kv.trace.uses", "Uses that were written to the trace."),
            entry("kv.trace.written", "Bytes of the trace."),
            entry("kv.used", "Bytes of a tenant's values, in memory or on disk."),
            entry("kv.version", "Always 1; the version is in its label."),
            entry("kv.writes", "Values that somebody wanted to store, by outcome; refused: there was no room."));

    @Override
    public Meter.Id map(Meter.Id id) {
        String text = DESCRIPTIONS.get(id.getName());
        return text == null
                ? id
                : new Meter.Id(id.getName(), Tags.of(id.getTags()), id.getBaseUnit(), text, id.getType());
    }
}

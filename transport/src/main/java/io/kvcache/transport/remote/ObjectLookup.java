package io.kvcache.transport.remote;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.Violation;

/// Asks for a resident object and where it lies, without its bytes.
final class ObjectLookup implements DataLine.Exchange {

    private ObjectArrival.Found found = ObjectArrival.Found.NOTHING;
    private boolean replied;

    private ObjectLookup() {}

    /// @param untilNanos when nobody waits any longer
    /// @param body of GET_OBJECT
    static ObjectArrival.Found ask(Attachment attachment, long untilNanos, BodyWriter body) throws CallFailed {
        ObjectLookup lookup = new ObjectLookup();
        attachment.data().use(untilNanos, (line, patience) -> line.run(MessageType.GET_OBJECT, body, patience, lookup));
        return lookup.found;
    }

    @Override
    public void reply(BodyReader body) throws Violation {
        found = ObjectArrival.Found.read(body);
        replied = true;
    }

    @Override
    public boolean done() {
        return replied;
    }
}

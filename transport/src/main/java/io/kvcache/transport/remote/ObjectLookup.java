package io.kvcache.transport.remote;

import io.kvcache.transport.wire.BodyReader;
import io.kvcache.transport.wire.BodyWriter;
import io.kvcache.transport.wire.MessageType;
import io.kvcache.transport.wire.ProtocolException;

/// Asks for a resident object and where it lies, without its bytes.
final class ObjectLookup implements DataConnection.ReplyHandler {

    private ObjectReceiver.FoundObject foundObject = ObjectReceiver.FoundObject.NOT_FOUND;
    private boolean replied;

    private ObjectLookup() {}

    /// @param untilNanos when nobody waits any longer
    /// @param body of GET_OBJECT
    static ObjectReceiver.FoundObject ask(RemoteSession remoteSession, long untilNanos, BodyWriter body)
            throws RpcException {
        ObjectLookup lookup = new ObjectLookup();
        remoteSession
                .data()
                .withConnection(
                        untilNanos, (line, patience) -> line.call(MessageType.GET_OBJECT, body, patience, lookup));
        return lookup.foundObject;
    }

    @Override
    public void onReply(BodyReader body) throws ProtocolException {
        foundObject = ObjectReceiver.FoundObject.read(body);
        replied = true;
    }

    @Override
    public boolean isComplete() {
        return replied;
    }
}

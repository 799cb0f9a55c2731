package io.kvcache.server.zmq;

/// A batch as it was or will be sent.
///
/// @param sequence counts messages from 0; all ones for the end of a reply
@SuppressWarnings("ArrayRecordComponent") // sent, never compared
record ZmqMessage(String topic, long sequence, byte[] payload) {

    private static final byte[] NOTHING = {};

    /// Ends what was asked for.
    static ZmqMessage end(String topic) {
        return new ZmqMessage(topic, -1, NOTHING);
    }
}

package io.kvcache.transport.remote;

import io.kvcache.core.ObjectHint;
import io.kvcache.transport.wire.ObjectHintCodec;
import java.util.ArrayList;
import java.util.List;

/// Cuts what is said of many objects into messages.
///
/// They go in the order of the keys, and the last first where that is how the objects are to go. A
/// session's turn is told of in one, with the last of its keys, as what a message does not name the
/// session has left behind.
final class ObjectHintBatches {

    private ObjectHintBatches() {}

    /// The keys of each message.
    static List<List<byte[]>> of(List<byte[]> keys, ObjectHint hint) {
        List<List<byte[]>> parts = new ArrayList<>();
        for (int end = keys.size(); end > 0; ) {
            int begin = batchStart(keys, end);
            parts.add(keys.subList(begin, end));
            end = begin;
        }
        boolean whole = hint instanceof ObjectHint.Label label && label.label().session() != 0;
        if (whole && parts.size() > 1) {
            return parts.subList(0, 1);
        }
        return hint instanceof ObjectHint.Forget ? parts : parts.reversed();
    }

    private static int batchStart(List<byte[]> keys, int end) {
        int begin = end;
        long bytes = 0;
        while (begin > 0 && end - begin < ObjectHintCodec.MAX_KEYS && bytes < ObjectHintCodec.MAX_KEY_BYTES) {
            bytes += Integer.BYTES + keys.get(--begin).length;
        }
        return begin;
    }
}

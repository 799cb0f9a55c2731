package io.kvcache.server.event;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.identity.BlockKey;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.http.Json;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;

/// One event as a message of an event stream: `id`, `event` and `data`, which is a line of JSON.
final class SseEncoder {

    private SseEncoder() {}

    static String event(CacheEvent event, Namespace namespace, EventId id) {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("sequence", event.sequence());
        data.putAll(data(event, namespace));
        return message(id, event.kind().isAddition() ? "stored" : "removed", data);
    }

    private static Map<String, Object> data(CacheEvent event, Namespace namespace) {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("tier", lowerCaseName(event.tier()));
        if (!event.kind().isAddition()) {
            data.put("cause", lowerCaseName(event.kind()));
        }
        data.put("namespace", namespace.model());
        data.put("key", new BlockKey(event.keyHi(), event.keyLo()).toString());
        if (namespace.parts().isEmpty()) {
            data.put("object", true);
        } else {
            data.put("depth", event.depth());
        }
        if (event.depth() > 0) {
            data.put("parent", new BlockKey(event.parentHi(), event.parentLo()).toString());
        }
        if (event.engineHash() != 0) {
            data.put("engineHash", Long.toUnsignedString(event.engineHash())); // JavaScript rounds large numbers
        }
        return data;
    }

    /// Something that is stored, as a snapshot has it: it has no number.
    static String snapshotEntry(CacheEvent event, Namespace namespace) {
        Map<String, Object> data = data(event, namespace);
        return "event: stored\ndata: " + Json.text(data) + "\n";
    }

    /// Says that a snapshot begins.
    static String snapshotBegin(int entries) {
        return "event: snapshot\ndata: " + Json.text(Map.of("entries", entries)) + "\n";
    }

    /// Says that a snapshot is complete; the events after this one are those that are not in it.
    static String snapshotEnd(EventId last) {
        return message(last, "live", Map.of("sequence", last.sequence()));
    }

    /// Says that events are missing before the next one.
    ///
    /// @param why `history` when they are no longer kept, `restart` when they were those of an earlier run
    static String gap(EventId before, EventId asked, String why) {
        Map<String, Object> data = new LinkedHashMap<>();
        data.put("reason", why);
        data.put("asked", asked.toString());
        data.put("oldest", before.sequence() + 1);
        return message(before, "gap", data);
    }

    private static String message(EventId id, String name, Map<String, Object> data) {
        return "id: " + id + "\nevent: " + name + "\ndata: " + Json.text(data) + "\n";
    }

    private static String lowerCaseName(Enum<?> constant) {
        return constant.name().toLowerCase(Locale.ROOT);
    }
}

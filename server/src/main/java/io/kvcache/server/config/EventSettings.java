package io.kvcache.server.config;

/// Reads `events`.
final class EventSettings {

    private EventSettings() {}

    static EventsConfig read(Settings from, EventsConfig otherwise) {
        String publish = from.get("events.publish", otherwise.publish(), String::strip);
        String replay = from.get("events.replay", otherwise.replay(), String::strip);
        String topic = from.get("events.topic", otherwise.topic(), text -> text);
        EventEncoding encoding =
                from.get("events.encoding", otherwise.encoding(), text -> Values.choice(EventEncoding.class, text));
        EventHashes hashes =
                from.get("events.hashes", otherwise.hashes(), text -> Values.choice(EventHashes.class, text));
        boolean replayTopic = from.get("events.replay_topic", otherwise.replayTopic(), Values::truth);
        int batches = from.get(
                "events.replay_batches", otherwise.replayBatches(), Values.integer(1, EventsConfig.MOST_BATCHES));
        String tenant = from.get("events.tenant", otherwise.tenant(), String::strip);
        boolean withoutAuth = from.get("events.without_auth", otherwise.withoutAuth(), Values::truth);
        return from.checked(
                otherwise,
                () -> new EventsConfig(
                        publish, replay, topic, encoding, hashes, replayTopic, batches, tenant, withoutAuth));
    }
}

package io.kvcache.server.config;

/// Reads `events`.
final class EventsConfigReader {

    private EventsConfigReader() {}

    static EventsConfig read(Settings from, EventsConfig defaultValue) {
        String publish = from.get("events.publish", defaultValue.publish(), String::strip);
        String replay = from.get("events.replay", defaultValue.replay(), String::strip);
        String topic = from.get("events.topic", defaultValue.topic(), text -> text);
        EventEncoding encoding = from.get(
                "events.encoding",
                defaultValue.encoding(),
                text -> SettingParsers.parseEnum(EventEncoding.class, text));
        EventHashes hashes = from.get(
                "events.hashes", defaultValue.hashes(), text -> SettingParsers.parseEnum(EventHashes.class, text));
        boolean replayTopic = from.get("events.replay_topic", defaultValue.replayTopic(), SettingParsers::parseBoolean);
        int batches = from.get(
                "events.replay_batches",
                defaultValue.replayBatches(),
                SettingParsers.integerParser(1, EventsConfig.MAX_REPLAY_BATCHES));
        String tenant = from.get("events.tenant", defaultValue.tenant(), String::strip);
        boolean withoutAuth =
                from.get("events.without_auth", defaultValue.allowUnauthenticated(), SettingParsers::parseBoolean);
        return from.getValid(
                defaultValue,
                () -> new EventsConfig(
                        publish, replay, topic, encoding, hashes, replayTopic, batches, tenant, withoutAuth));
    }
}

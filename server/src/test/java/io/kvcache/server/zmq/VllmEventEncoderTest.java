package io.kvcache.server.zmq;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.event.CacheEvent;
import io.kvcache.core.event.EventKind;
import io.kvcache.core.event.TierKind;
import io.kvcache.core.identity.BlockShape;
import io.kvcache.core.identity.Dtype;
import io.kvcache.core.identity.Namespace;
import io.kvcache.server.config.EventsConfig.EventEncoding;
import io.kvcache.server.config.EventsConfig.EventHashes;
import io.kvcache.server.config.EventsConfig.EventMedia;
import io.kvcache.server.zmq.ZmqPublisher.VllmEventEncoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.msgpack.core.MessagePack;
import org.msgpack.core.MessageUnpacker;
import org.msgpack.value.Value;

/// Bytes that were put together by hand from the schema, with vLLM's own hashes of tokens 1..4 and 5..8.
final class VllmEventEncoderTest {

    private static final Namespace MODEL = Namespace.of("m", BlockShape.kv(1, 1, 1, 4, Dtype.BF16));

    /// The event of `58d0879d...` is 9561501211280363793.
    private static final long FIRST = Long.parseUnsignedLong("9561501211280363793");

    private static final long SECOND = 0xd43b57df56b58fb1L;

    private static CacheEvent event(EventKind kind, TierKind tier, int depth, long engineHash, long parent) {
        return new CacheEvent(depth, kind, tier, 0, depth + 1, -depth - 1, depth, -depth, depth, engineHash, parent);
    }

    private static VllmEventEncoder encoder(EventEncoding encoding, EventHashes hashes) {
        return new VllmEventEncoder(encoding, hashes, EventMedia.VLLM, false);
    }

    private static String hex(String text) {
        return HexFormat.of().formatHex(text.getBytes(StandardCharsets.US_ASCII));
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    @Test
    void givenAFirstBlock_whenWrittenAsAnArray_thenTheBytesAreThoseOfTheSchema() {
        byte[] batch = encoder(EventEncoding.ARRAY, EventHashes.ENGINE)
                .encodeBatch(1.5, MODEL, List.of(event(EventKind.STORED, TierKind.HOST, 0, FIRST, 0)));
        assertThat(hex(batch))
                .isEqualTo("93" + "cb3ff8000000000000" + "91" + "9a" + "ab" + hex("BlockStored") + "91"
                        + "cf84b146b151d55111" + "c0" + "90" + "04" + "c0" + "a3" + hex("CPU") + "c0" + "c0" + "00"
                        + "c0");
    }

    @Test
    void givenAFirstBlock_whenWrittenAsAMap_thenTheBytesAreThoseOfTheSchema() {
        byte[] batch = encoder(EventEncoding.MAP, EventHashes.ENGINE)
                .encodeBatch(1.5, MODEL, List.of(event(EventKind.STORED, TierKind.HOST, 0, FIRST, 0)));
        assertThat(hex(batch))
                .isEqualTo("93" + "cb3ff8000000000000" + "91" + "8b" + "a4" + hex("type") + "ab" + hex("BlockStored")
                        + "ac" + hex("block_hashes") + "91" + "cf84b146b151d55111"
                        + "b1" + hex("parent_block_hash") + "c0"
                        + "a9" + hex("token_ids") + "90"
                        + "aa" + hex("block_size") + "04"
                        + "a7" + hex("lora_id") + "c0"
                        + "a6" + hex("medium") + "a3" + hex("CPU")
                        + "a9" + hex("lora_name") + "c0"
                        + "a9" + hex("group_idx") + "00"
                        + "a8" + hex("locality") + "a6" + hex("REMOTE")
                        + "a9" + hex("ownership") + "a7" + hex("kvcache") + "c0");
    }

    @Test
    void givenBlocksOfAChain_whenStoredAndRemoved_thenRunsBecomeOneEventEach() throws Exception {
        List<CacheEvent> events = List.of(
                event(EventKind.STORED, TierKind.HOST, 0, FIRST, 0),
                event(EventKind.STORED, TierKind.HOST, 1, SECOND, FIRST),
                event(EventKind.STORED, TierKind.DISK, 0, FIRST, 0),
                event(EventKind.EVICTED, TierKind.HOST, 1, SECOND, FIRST),
                event(EventKind.DROPPED, TierKind.HOST, 0, FIRST, 0),
                event(EventKind.STORED, TierKind.HOST, 1, SECOND, FIRST));
        List<Value> told =
                unpacked(encoder(EventEncoding.ARRAY, EventHashes.ENGINE).encodeBatch(2, MODEL, events));
        assertThat(told.toString())
                .isEqualTo(("[['BlockStored',[9561501211280363793,%1$s],null,[],4,null,'CPU',null,null,0],"
                                + " ['BlockStored',[9561501211280363793],null,[],4,null,'STORAGE',null,null,0],"
                                + " ['BlockRemoved',[%1$s,9561501211280363793],'CPU',0],"
                                + " ['BlockStored',[%1$s],9561501211280363793,[],4,null,'CPU',null,null,0]]")
                        .formatted(Long.toUnsignedString(SECOND))
                        .replace('\'', '"'));
    }

    /// vLLM's own classes refuse an event that lacks a field without a default: the seven of `BlockStored`
    /// (`lora_name` since vllm#27577, nil without an adapter) and the two of `BlockRemoved`. The
    /// group comes after them, in an array behind the `extra_keys` that has no value.
    @ParameterizedTest
    @EnumSource(EventEncoding.class)
    void givenNoAdapter_whenWritten_thenEveryFieldThatVllmRequiresIsThere(EventEncoding encoding) throws Exception {
        VllmEventEncoder schema = encoder(encoding, EventHashes.ENGINE);
        List<CacheEvent> events = List.of(
                event(EventKind.STORED, TierKind.HOST, 0, FIRST, 0),
                event(EventKind.EVICTED, TierKind.HOST, 0, FIRST, 0));
        List<String> stored = new ArrayList<>(List.of(
                "block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium", "lora_name"));
        boolean array = encoding == EventEncoding.ARRAY;
        if (array) {
            stored.add("extra_keys");
        }
        stored.add("group_idx");
        List<String> removed = new ArrayList<>(List.of("block_hashes", "medium", "group_idx"));
        if (!array) {
            stored.addAll(List.of("locality", "ownership"));
            removed.addAll(List.of("locality", "ownership"));
        }
        List<Value> told = unpacked(schema.encodeBatch(2, MODEL, events));
        assertThat(members(told.get(0), encoding, "BlockStored", stored))
                .isEqualTo(
                        "[[9561501211280363793],null,[],4,null,CPU,null," + (array ? "null,0]" : "0,REMOTE,kvcache]"));
        assertThat(members(told.get(1), encoding, "BlockRemoved", removed))
                .isEqualTo("[[9561501211280363793],CPU,0" + (array ? "]" : ",REMOTE,kvcache]"));
        assertThat(members(unpacked(schema.encodeCleared(2)).getFirst(), encoding, "AllBlocksCleared", List.of()))
                .isEqualTo("[]");
    }

    /// The members of an event in the order of the names, after its type; fails when there are others or they
    /// lack.
    private static String members(Value event, EventEncoding encoding, String type, List<String> names) {
        List<Value> values = new ArrayList<>();
        if (encoding == EventEncoding.ARRAY) {
            values.addAll(event.asArrayValue().list());
        } else {
            event.asMapValue().entrySet().forEach(member -> values.add(member.getValue()));
            assertThat(event.asMapValue().keySet().stream()
                            .map(name -> name.asStringValue().asString()))
                    .containsExactlyElementsOf(
                            Stream.concat(Stream.of("type"), names.stream()).toList());
        }
        assertThat(values).hasSize(1 + names.size());
        assertThat(values.removeFirst().asStringValue().asString()).isEqualTo(type);
        return values.toString().replace(", ", ",");
    }

    @Test
    void givenBlocksWithoutAnEnginesHash_whenWritten_thenTheirKeysNameThem() throws Exception {
        CacheEvent event = new CacheEvent(0, EventKind.STORED, TierKind.HOST, 0, 1, 2, 3, 4, 5, 0, 0);
        assertThat(unpacked(encoder(EventEncoding.ARRAY, EventHashes.ENGINE).encodeBatch(2, MODEL, List.of(event)))
                        .toString())
                .isEqualTo("[[\"BlockStored\",[2],4,[],4,null,\"CPU\",null,null,0]]");
        Value bytes = unpacked(encoder(EventEncoding.ARRAY, EventHashes.KEY).encodeBatch(2, MODEL, List.of(event)))
                .getFirst()
                .asArrayValue()
                .get(1)
                .asArrayValue()
                .get(0);
        assertThat(hex(bytes.asBinaryValue().asByteArray())).isEqualTo("00000000000000010000000000000002");
    }

    @ParameterizedTest
    @CsvSource({
        "VLLM, HOST, CPU", "VLLM, DISK, STORAGE", "VLLM, DEVICE, GPU", "VLLM, REMOTE, REMOTE",
        "SGLANG, HOST, CPU_PINNED", "SGLANG, DISK, DISK", "SGLANG, DEVICE, GPU", "SGLANG, REMOTE, EXTERNAL"
    })
    void givenATier_whenWritten_thenMediumIsTheEnginesName(EventMedia media, TierKind tier, String medium)
            throws Exception {
        VllmEventEncoder encoder = new VllmEventEncoder(EventEncoding.MAP, EventHashes.ENGINE, media, true);
        for (EventKind kind : List.of(EventKind.STORED, EventKind.EVICTED)) {
            assertThat(unpacked(encoder.encodeBatch(2, MODEL, List.of(event(kind, tier, 0, FIRST, 0))))
                            .toString())
                    .contains("\"medium\":\"" + medium + "\"");
        }
    }

    @ParameterizedTest
    @CsvSource({
        "vllm-tier/2 tp=1 tokens=16 blocks=1, 18446744073709551615, 16, 0",
        "'vllm-tier/2 tokens=16,16 blocks=1', 18446744073709551615, 0, null",
        "sglang/2 pool=kv page=64, -1, 64, 0",
        "lmcache/1, 18446744073709551615, 0, null"
    })
    void givenAValueOfAnEngine_whenWritten_thenWhatItsNamespaceSaysIsTold(
            String layout, String hash, String tokens, String group) throws Exception {
        Namespace values = Namespace.builder("m").layout(layout).build();
        CacheEvent event = new CacheEvent(0, EventKind.STORED, TierKind.DISK, 0, 1, 2, 0, 0, 0, -1, 0);
        assertThat(VllmEventEncoder.isBlock(values, event)).isTrue();
        CacheEvent plain = new CacheEvent(0, EventKind.STORED, TierKind.DISK, 0, 1, 2, 0, 0, 0, 0, 0);
        assertThat(VllmEventEncoder.isBlock(values, plain)).isFalse();
        assertThat(unpacked(encoder(EventEncoding.ARRAY, EventHashes.ENGINE).encodeBatch(2, values, List.of(event)))
                        .toString())
                .isEqualTo("[[\"BlockStored\",[%s],null,[],%s,null,\"STORAGE\",null,null,%s]]"
                        .formatted(hash, tokens, group));
    }

    @Test
    void givenAnAdapter_whenWritten_thenItIsNamed() throws Exception {
        Namespace adapted = MODEL.toBuilder().adapter("lora-7").build();
        List<CacheEvent> events = List.of(event(EventKind.STORED, TierKind.HOST, 0, FIRST, 0));
        assertThat(unpacked(encoder(EventEncoding.MAP, EventHashes.ENGINE).encodeBatch(2, adapted, events))
                        .toString())
                .contains("\"lora_name\":\"lora-7\"");
        assertThat(unpacked(encoder(EventEncoding.MAP, EventHashes.ENGINE).encodeCleared(2))
                        .toString())
                .isEqualTo("[{\"type\":\"AllBlocksCleared\"}]");
    }

    private static List<Value> unpacked(byte[] batch) throws Exception {
        try (MessageUnpacker unpacker = MessagePack.newDefaultUnpacker(batch)) {
            Value all = unpacker.unpackValue();
            assertThat(unpacker.hasNext()).isFalse();
            assertThat(all.asArrayValue().size()).isEqualTo(3);
            return all.asArrayValue().get(1).asArrayValue().list();
        }
    }

    @ParameterizedTest
    @CsvSource({
        "1, 01",
        "127, 7f",
        "128, cc80",
        "255, ccff",
        "256, cd0100",
        "65535, cdffff",
        "65536, ce00010000",
        "4294967295, ceffffffff",
        "4294967296, cf0000000100000000",
        "9223372036854775807, cf7fffffffffffffff",
        "-9223372036854775808, cf8000000000000000",
        "-1, cfffffffffffffffff"
    })
    void givenAHash_whenWritten_thenItIsUnsignedAndOfTheShortestForm(long hash, String bytes) {
        byte[] batch = encoder(EventEncoding.ARRAY, EventHashes.ENGINE)
                .encodeBatch(1.5, MODEL, List.of(event(EventKind.EVICTED, TierKind.DISK, 0, hash, 0)));
        assertThat(hex(batch))
                .isEqualTo("93" + "cb3ff8000000000000" + "91" + "94" + "ac" + hex("BlockRemoved") + "91" + bytes + "a7"
                        + hex("STORAGE") + "00" + "c0");
    }

    @ParameterizedTest
    @CsvSource({"15, 9f", "16, dc0010", "512, dc0200"})
    void givenManyBlocks_whenWritten_thenTheirCountIsOfTheShortestForm(int count, String bytes) {
        List<CacheEvent> run = IntStream.range(0, count)
                .mapToObj(depth -> event(EventKind.EVICTED, TierKind.HOST, depth, 1, 0))
                .toList();
        assertThat(hex(encoder(EventEncoding.ARRAY, EventHashes.KEY).encodeBatch(1.5, MODEL, run)))
                .startsWith("93" + "cb3ff8000000000000" + "91" + "94" + "ac" + hex("BlockRemoved") + bytes + "c410"
                        + "0000000000000001" + "ffffffffffffffff")
                .endsWith("a3" + hex("CPU") + "00" + "c0");
    }

    @ParameterizedTest
    @CsvSource({"31, bf", "32, d920", "255, d9ff", "256, da0100", "512, da0200"})
    void givenALongName_whenWritten_thenItsLengthIsOfTheShortestForm(int length, String bytes) {
        String adapter = "x".repeat(length);
        Namespace adapted = MODEL.toBuilder().adapter(adapter).build();
        assertThat(hex(encoder(EventEncoding.ARRAY, EventHashes.ENGINE)
                        .encodeBatch(1.5, adapted, List.of(event(EventKind.STORED, TierKind.HOST, 0, FIRST, 0)))))
                .endsWith("a3" + hex("CPU") + bytes + hex(adapter) + "c0" + "00" + "c0");
    }
}

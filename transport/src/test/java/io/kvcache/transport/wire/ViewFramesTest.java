package io.kvcache.transport.wire;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.kvcache.transport.cluster.ClusterNode;
import io.kvcache.transport.cluster.ClusterView;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.cluster.NodeState;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import org.junit.jupiter.api.Test;

/// The bytes of views of a cluster, as PROTOCOL.md has them.
final class ViewFramesTest {

    private static final NodeInfo NODE = new NodeInfo(
            new ClusterNode("kv-0", 1.5, "a", "h"),
            0x1122334455667788L,
            NodeState.DRAINING,
            "kv-0:7420",
            "kv-0:7379",
            "0.1",
            3,
            0x0807060504030201L);

    private static final String VIEW = """
            0200 6b76                              cluster kv
            0700000000000000                       epoch 7
            efcdab8967452301                       digest
            01000000                               one node
            4800                                   72 bytes
            8877665544332211                       incarnation
            02                                     draining
            000000000000f83f                       weight 1.5
            0300000000000000                       features
            0400 6b762d30                          name kv-0
            0100 61                                zone a
            0100 68                                host h
            0900 6b762d303a37343230                address kv-0:7420
            0900 6b762d303a37333739                value address kv-0:7379
            0300 302e31                            version 0.1
            0102030405060708                       drops
            """;

    private static byte[] bytes(String lines) {
        StringBuilder hex = new StringBuilder();
        for (String line : lines.lines().toList()) {
            hex.append(line.substring(0, Math.min(line.length(), 38)).replace(" ", ""));
        }
        return HexFormat.of().parseHex(hex);
    }

    @Test
    void givenAView_whenWrittenAndRead_thenItsBytesAreThoseOfTheProtocol() throws ProtocolException {
        ClusterView view = new ClusterView("kv", 7, List.of(NODE), 0x0123456789abcdefL);
        BodyWriter body = new BodyWriter();
        ViewCodec.write(view, body);
        assertThat(body.toBytes()).isEqualTo(bytes(VIEW));
        ClusterView read = ViewCodec.read(new BodyReader(ByteBuffer.wrap(bytes(VIEW))));
        assertThat(read).isEqualTo(view);
        assertThat(read.nodes()).containsExactly(NODE);
        assertThat(read.serving()).isEmpty();
    }

    @Test
    void givenANodeOfALaterVersion_whenRead_thenItsFurtherFieldsAreSkipped() throws ProtocolException {
        BodyWriter body = new BodyWriter();
        ViewCodec.write(NODE, body);
        byte[] node = body.toBytes();
        ByteBuffer longer =
                ByteBuffer.allocate(node.length + 5).put(node).putInt(99).put((byte) 1);
        longer.put(0, (byte) (node[0] + 4));
        BodyReader reader = new BodyReader(longer.flip());
        assertThat(ViewCodec.readNode(reader)).isEqualTo(NODE);
        assertThat(reader.u8("next")).isEqualTo(1);
    }

    @Test
    void givenANodeOutOfRange_whenRead_thenTheFieldIsNamed() {
        BodyWriter body = new BodyWriter();
        ViewCodec.write(NODE, body);
        byte[] node = body.toBytes();
        node[10] = 3;
        assertThatThrownBy(() -> ViewCodec.readNode(new BodyReader(ByteBuffer.wrap(node))))
                .isInstanceOf(ProtocolException.class)
                .hasMessage("state = 3; allowed: 0 to 2");
    }

    @Test
    void givenTwoViews_whenTheirServersAreTheSame_thenSoAreTheirDigests() {
        ClusterView one = new ClusterView("kv", 7, List.of(NODE));
        assertThat(new ClusterView("kv", 8, List.of(NODE)).digest()).isEqualTo(one.digest());
        assertThat(new ClusterView("kv", 7, List.of(NODE.withState(NodeState.SERVING))).digest())
                .isNotEqualTo(one.digest());
    }
}

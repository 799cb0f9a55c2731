package io.kvcache.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.cluster.JGroupsMembership.MemberTable;
import io.kvcache.transport.cluster.NodeInfo;
import io.kvcache.transport.wire.ProtocolException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import org.junit.jupiter.api.Test;

/// Which members of a group hold their names.
final class MemberTableTest {

    private static final String SELF = "self";
    private static final String OTHER = "other";

    private final MemberTable<String> table = new MemberTable<>(SELF, hello("kv-0", 5, false, 0));

    private static MemberHello hello(String name, long incarnation, boolean settled, long revision) {
        return new MemberHello(TestMember.info(name, incarnation), settled, revision, "secret of " + name);
    }

    private void settle() {
        table.tell(table.ownHello().node(), true);
    }

    @Test
    void givenAMemberThatHasToldNothing_whenItIsThere_thenTheTableIsNotComplete() {
        assertThat(table.onMembers(List.of(OTHER, SELF))).containsExactly(OTHER);
        assertThat(table.isComplete()).isFalse();

        table.onHello(OTHER, hello("kv-1", 1, true, 0));

        assertThat(table.isComplete()).isTrue();
    }

    @Test
    void givenAnUnsettledMember_whenAllIsTold_thenItIsNotPresent() {
        table.onMembers(List.of(OTHER, SELF));
        table.onHello(OTHER, hello("kv-1", 1, false, 0));
        settle();

        assertThat(table.present()).extracting(NodeInfo::name).containsExactly("kv-0");
    }

    @Test
    void givenASettledOneOfTheName_whenThisOneJoins_thenItIsTheRival() {
        table.onMembers(List.of(SELF, OTHER));
        table.onHello(OTHER, hello("kv-0", 1, true, 0));

        assertThat(table.rival()).isEqualTo(TestMember.info("kv-0", 1));

        table.onMembers(List.of(SELF));

        assertThat(table.rival()).isNull();
    }

    @Test
    void givenTwoUnsettledOnes_whenBothHaveTheName_thenTheFirstMemberHoldsIt() {
        table.onHello(OTHER, hello("kv-0", 9, false, 0));

        table.onMembers(List.of(SELF, OTHER));
        assertThat(table.rival()).isNull();

        table.onMembers(List.of(OTHER, SELF));
        assertThat(table.rival()).isNotNull();
    }

    @Test
    void givenTwoSettledOnes_whenSidesMeet_thenTheLaterProcessHoldsTheName() {
        settle();
        table.onMembers(List.of(SELF, OTHER));

        table.onHello(OTHER, hello("kv-0", 4, true, 0));
        assertThat(table.present()).containsExactly(TestMember.info("kv-0", 5));

        table.onHello(OTHER, hello("kv-0", 6, true, 1));
        assertThat(table.present()).containsExactly(TestMember.info("kv-0", 6));
    }

    @Test
    void givenAnOlderHello_whenItComesLate_thenTheNewerOneHolds() {
        table.onMembers(List.of(SELF, OTHER));
        table.onHello(OTHER, hello("kv-1", 1, true, 2));

        table.onHello(OTHER, hello("kv-1", 1, false, 1));
        settle();

        assertThat(table.present()).hasSize(2);
    }

    @Test
    void givenAMemberThatComesBack_whenItHasToldNothingNew_thenItIsPresentAtOnce() {
        settle();
        table.onMembers(List.of(SELF, OTHER));
        table.onHello(OTHER, hello("kv-1", 1, true, 0));
        table.onMembers(List.of(SELF));

        assertThat(table.onMembers(List.of(SELF, OTHER))).containsExactly(OTHER);

        assertThat(table.present()).hasSize(2);
    }

    /// A later version adds fields at the end of a server and of a hello.
    @Test
    void givenAHelloOfALaterVersion_whenRead_thenItsKnownFieldsCount() throws ProtocolException {
        MemberHello hello = hello("kv-1", 1, true, 3);
        ByteBuffer bytes = ByteBuffer.wrap(hello.toBytes()).order(ByteOrder.LITTLE_ENDIAN);
        int node = 1 + Long.BYTES;
        int nodeEnd = node + Short.BYTES + bytes.getShort(node);
        ByteBuffer later = ByteBuffer.allocate(bytes.capacity() + 2 * Long.BYTES)
                .order(ByteOrder.LITTLE_ENDIAN)
                .put(bytes.slice(0, nodeEnd))
                .putLong(4711)
                .put(bytes.slice(nodeEnd, bytes.capacity() - nodeEnd))
                .putLong(4711)
                .putShort(node, (short) (bytes.getShort(node) + Long.BYTES))
                .flip();

        assertThat(MemberHello.read(later)).isEqualTo(hello);
    }

    @Test
    void givenMoreMembersThanRoom_whenTheyHaveLeft_thenTheOldestAreForgotten() {
        for (int i = 0; i < 2000; i++) {
            table.onHello("gone-" + i, hello("gone-" + i, 1, true, 0));
        }

        table.onMembers(List.of(SELF));

        assertThat(table.node("gone-0")).isNull();
        assertThat(table.node("gone-1999")).isNotNull();
        assertThat(table.node(SELF)).isNotNull();
    }
}

package io.kvcache.transport.cluster;

import static org.assertj.core.api.Assertions.assertThat;

import io.kvcache.core.identity.BlockKey;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/// The vectors of PROTOCOL.md, by which clients in other languages check that they find the same owners. They stay the
/// same in all releases: clients of different releases share servers.
final class PlacementVectorsTest {

    private static final int LOOK_BLOCKS = 4096;

    private String cluster = "";
    private List<ClusterNode> nodes = new ArrayList<>();

    @Test
    void givenThePageOfTheProtocol_whenItsVectorsAreComputed_thenTheyAreEqual() throws IOException {
        String page = Files.readString(Path.of("../PROTOCOL.md"));
        int begin = page.indexOf("```placement\n") + "```placement\n".length();
        int compared = 0;
        for (String line :
                page.substring(begin, page.indexOf("```", begin)).lines().toList()) {
            String[] sides = line.split(" =", 2);
            String[] question = sides[0].split(" ");
            List<String> answer = List.of(sides[1].strip().split(" "));
            switch (question[0]) {
                case "cluster" -> {
                    cluster = sides[1].strip();
                    nodes = new ArrayList<>();
                }
                case "node" -> nodes.add(node(question[1], answer));
                default -> {
                    assertThat(compute(question)).as(line).startsWith(answer.toArray(String[]::new));
                    compared++;
                }
            }
        }
        assertThat(compared).isGreaterThan(20);
    }

    private static ClusterNode node(String name, List<String> answer) {
        double weight = Double.parseDouble(answer.getFirst());
        return answer.size() == 1
                ? new ClusterNode(name, weight, "", "")
                : new ClusterNode(name, weight, answer.get(1), answer.get(2));
    }

    private List<String> compute(String[] question) {
        return switch (question[0]) {
            case "groups" -> {
                BlockGroups groups = BlockGroups.of(Integer.parseInt(question[1]));
                yield texts(IntStream.range(0, LOOK_BLOCKS).map(groups::start).distinct());
            }
            case "order" -> names(placement().order(key(question[1])));
            case "owners" -> names(placement().owners(key(question[1]), Integer.parseInt(question[2])));
            case "slot" -> List.of(Integer.toString(HashSlots.of(question[1].getBytes(StandardCharsets.UTF_8))));
            case "slot-owner" -> names(new int[] {new HashSlots(placement()).owner(Integer.parseInt(question[1]))});
            case "runs" -> texts(IntStream.range(0, nodes.size()).map(this::runs));
            default -> throw new AssertionError("unknown vector " + question[0]);
        };
    }

    private int runs(int node) {
        HashSlots slots = new HashSlots(placement());
        return (int) IntStream.range(0, HashSlots.COUNT / 16)
                .filter(run -> slots.owner(16 * run) == node)
                .count();
    }

    private Placement placement() {
        return new Placement(cluster, nodes);
    }

    private static BlockKey key(String hex) {
        return BlockKey.ofDigest(HexFormat.of().parseHex(hex));
    }

    private List<String> names(int[] indexes) {
        return IntStream.of(indexes).mapToObj(node -> nodes.get(node).name()).toList();
    }

    private static List<String> texts(IntStream numbers) {
        return numbers.mapToObj(Integer::toString).toList();
    }
}

package io.kvcache.server.deploy;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.fabric8.kubernetes.api.model.Secret;
import io.kvcache.server.ServerPreflight;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.ConfigReader.Source;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.deploy.KubernetesManifests.Certificate;
import io.kvcache.server.deploy.KubernetesManifests.Issuer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import tools.jackson.databind.JsonNode;

/// The manifests of `deploy/kubernetes`, without a cluster.
final class KubernetesTest {

    private static final Path REPOSITORY = Path.of("..").toAbsolutePath().normalize();
    private static final Path ROOT = REPOSITORY.resolve("deploy/kubernetes");
    private static final Path LAUNCHER = REPOSITORY.resolve(".mvn/java-flags.sh");
    private static final List<String> COMPONENTS = List.of("monitoring", "cert-manager");

    @TempDir
    private Path folder = Path.of("");

    private static List<String> findProblems(Path root, String overlay) throws Exception {
        Map<String, Set<String>> keys = new TreeMap<>();
        KubernetesManifests.exampleSecrets(root)
                .forEach((name, secret) -> keys.put(name, secret.getStringData().keySet()));
        return KubernetesCheck.findProblems(KubernetesManifests.of(root, overlay, COMPONENTS), keys, LAUNCHER);
    }

    @ParameterizedTest
    @ValueSource(strings = {"one", "three", "disks"})
    void givenAnOverlay_whenComparedWithItsSettings_thenNothingContradicts(String overlay) throws Exception {
        assertThat(findProblems(ROOT, overlay)).isEmpty();
    }

    /// A mistake in a file, and the words by which it is found.
    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            base/statefulset.yaml | containerPort: 7379 | containerPort: 7380 | container ports
            base/services.yaml | name: data, port: 7379 | name: data, port: 7380 | port data of kvcache
            base/services.yaml | targetPort: pages | targetPort: data | port pages of kvcache-nodes
            base/services.yaml | name: pages, port: 9090, targetPort: pages | name: data, port: 7379, targetPort: data | ports of services
            overlays/three/nodes-service.yaml | name: cluster, port: 7421, targetPort: cluster | name: data, port: 7379, targetPort: data | ports of services
            base/services.yaml | clusterIP: None | clusterIP: 10.0.0.1 | clusterIP of the nodes
            base/services.yaml | publishNotReadyAddresses: true | publishNotReadyAddresses: false | addresses that are not ready
            overlays/three/statefulset.yaml | "kvcache-nodes:7421" | "kvcache:7421" | cluster.dns
            overlays/three/statefulset.yaml | "$(POD_IP):7420" | "$(POD_IP):7379" | cluster.advertise
            base/statefulset.yaml | path: /health/ready | path: /health/live | readiness probe's path
            base/statefulset.yaml | path: /health/live, port: pages | path: /health/live, port: data | startup probe's port
            base/statefulset.yaml | failureThreshold: 2 | failureThreshold: 3 | the readiness probe fails after 6 s
            base/statefulset.yaml | limits: { memory: 14Gi | limits: { memory: 16Gi | memory request
            base/statefulset.yaml | memory: 14Gi | memory: 13Gi | It takes up to 90 %
            base/statefulset.yaml | sizeLimit: 64Mi | sizeLimit: 4Gi | less files in memory
            base/statefulset.yaml | runAsUser: 7379 | runAsUser: 1000 | runAsUser
            base/statefulset.yaml | fsGroup: 7379 | fsGroup: 0 | fsGroup
            base/statefulset.yaml | readOnlyRootFilesystem: true | readOnlyRootFilesystem: false | read-only root
            base/statefulset.yaml | drop: [ALL] | drop: [CHOWN] | dropped capabilities
            base/statefulset.yaml | terminationGracePeriodSeconds: 60 | terminationGracePeriodSeconds: 45 | terminationGracePeriodSeconds is 45
            base/disruption-budget.yaml | maxUnavailable: 1 | maxUnavailable: 2 | maxUnavailable
            base/disruption-budget.yaml | matchLabels: { app.kubernetes.io/name: kvcache } | matchLabels: { app: kvcache } | selector of PodDisruptionBudget
            base/network-policy.yaml | podSelector: { matchLabels: { app.kubernetes.io/name: kvcache } } | podSelector: { matchLabels: { app: kvcache } } | selector of NetworkPolicy
            base/network-policy.yaml | port: 7379 | port: 9090 | NetworkPolicy for clients
            base/network-policy.yaml | port: 9090 | port: 7421 | NetworkPolicy for monitoring
            overlays/three/network-policy.yaml | port: 7421 | port: 7379 | NetworkPolicy for servers
            overlays/three/statefulset.yaml | matchLabels: { app.kubernetes.io/name: kvcache } | matchLabels: { app: kvcache } | selector of podAntiAffinity
            base/statefulset.yaml | defaultMode: 288 | defaultMode: 292 | mode of secrets
            examples/secret.yaml | password: | passwords: | files of secrets
            examples/tls-secret.yaml | ca.crt: | authority.crt: | files of secrets
            overlays/three/kvcache.yaml | /run/secrets/kvcache/transport | /run/secrets/transport | files of secrets
            base/statefulset.yaml | mountPath: /tmp | mountPath: /var/tmp | /tmp
            base/statefulset.yaml | mountPath: /etc/kvcache | mountPath: /etc | directory of the settings
            overlays/three/kvcache.yaml | port: 9090 | port: 9092 | container ports
            components/monitoring/service-monitor.yaml | component: nodes | component: clients | port of the ServiceMonitor
            components/monitoring/service-monitor.yaml | jobLabel: app.kubernetes.io/name | jobLabel: app.kubernetes.io/component | job, as in the alerts
            """)
    void givenAMistake_whenComparedWithTheSettings_thenItIsFound(String file, String from, String to, String found)
            throws Exception {
        assertThat(findProblems(withMistake(file, from, to), "three")).anyMatch(each -> each.contains(found));
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', textBlock = """
            components/disk/statefulset.yaml | storage: 100Gi | storage: 90Gi | of which 5 % are the file system's
            components/disk/statefulset.yaml | mountPath: /var/lib/kvcache | mountPath: /var/lib | directory of the disk
            components/disk/statefulset.yaml | shutdown.drain=60s | shutdown.drain=90s | terminationGracePeriodSeconds is 150
            components/disk/statefulset.yaml | :90GiB | :90TiB | It takes up to 90 %
            """)
    void givenAMistakeOfADisk_whenComparedWithTheSettings_thenItIsFound(
            String file, String from, String to, String found) throws Exception {
        assertThat(findProblems(withMistake(file, from, to), "disks")).anyMatch(each -> each.contains(found));
    }

    @ParameterizedTest
    @CsvSource({"readOnlyRootFilesystem, readonlyRootFilesystem", "serviceName, servicename", "fsGroup:, fsgroup:"})
    void givenAFieldThatKubernetesLacks_whenParsed_thenItIsRejected(String from, String to) throws Exception {
        Path root = withMistake("base/statefulset.yaml", from, to);

        assertThatThrownBy(() -> KubernetesManifests.of(root, "one", List.of()))
                .hasMessageContaining(to.replace(":", ""));
    }

    private Path withMistake(String file, String from, String to) throws IOException {
        Path root = folder.resolve("kubernetes");
        try (Stream<Path> files = Files.walk(ROOT)) {
            for (Path each : files.toList()) {
                Files.copy(each, root.resolve(ROOT.relativize(each).toString()));
            }
        }
        Path broken = root.resolve(file);
        String text = Files.readString(broken);
        assertThat(text).contains(from);
        Files.writeString(broken, text.replace(from, to));
        return root;
    }

    @Test
    void givenTheImage_whenItsUserIsRead_thenItIsTheManifests() throws Exception {
        long user = KubernetesManifests.of(ROOT, "one", List.of())
                .pod()
                .getSecurityContext()
                .getRunAsUser();

        assertThat(Files.readString(REPOSITORY.resolve("deploy/Dockerfile")))
                .contains("\nUSER " + user + ":" + user + "\n");
        assertThat(Files.readString(REPOSITORY.resolve(".mvn/image/ImageTar.java")))
                .contains("USER = \"" + user + ":" + user + "\"");
    }

    @Test
    void givenTheCertificate_whenRead_thenItHasTheNamesOfAllPodsAndAKeyThatTheServerReads() throws Exception {
        KubernetesManifests manifests = KubernetesManifests.of(ROOT, "three", COMPONENTS);
        List<Certificate> certificates = manifests.all(Certificate.class);
        Certificate servers = certificates.stream()
                .filter(each -> each.metadata().getName().equals("kvcache-tls"))
                .findFirst()
                .orElseThrow();

        assertThat(servers.spec().dnsNames())
                .containsExactlyElementsOf(IntStream.range(
                                0, manifests.statefulSet().getSpec().getReplicas())
                        .mapToObj(each -> manifests.statefulSet().getMetadata().getName() + "-" + each)
                        .toList());
        assertThat(servers.spec().usages()).containsExactly("server auth", "client auth");
        assertThat(certificates)
                .allSatisfy(
                        each -> assertThat(each.spec().privateKey().encoding()).isEqualTo("PKCS8"));
        assertThat(KubernetesManifests.exampleSecrets(ROOT))
                .containsKey(servers.spec().secretName());
        assertThat(manifests.all(Issuer.class).stream()
                        .map(each -> each.metadata().getName()))
                .containsAll(certificates.stream()
                        .map(each -> each.spec().issuerRef().name())
                        .toList());
    }

    @Test
    void givenTheExampleSecrets_whenUsedAsTheyAre_thenTheServerRejectsThem() throws Exception {
        for (Secret secret : KubernetesManifests.exampleSecrets(ROOT).values()) {
            for (Map.Entry<String, String> entry : secret.getStringData().entrySet()) {
                Path file = Files.writeString(folder.resolve(entry.getKey()), entry.getValue());
                Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
            }
        }
        String settings = Files.readString(ROOT.resolve("overlays/three/kvcache.yaml"))
                .replace("/run/secrets/kvcache", folder.toString());
        ServerConfig config = new ConfigReader(
                        new HostResources(8L << 30, 2), Map.of("KVCACHE__CLUSTER__LISTEN", "10.0.0.5:7421"))
                .read(new Source("kvcache.yaml", settings), Map.of());

        assertThat(ServerPreflight.findFileProblems(config))
                .anyMatch(each -> each.contains(folder.resolve("password").toString()))
                .anyMatch(each -> each.contains(folder.resolve("transport").toString()))
                .anyMatch(each -> each.contains(folder.resolve("tls.crt").toString()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"one", "three", "disks"})
    void givenKubectl_whenItBuildsAnOverlay_thenTheObjectsAreThoseOfThisTest(String overlay) throws Exception {
        Path kubectl = Arrays.stream(System.getenv("PATH").split(":", -1))
                .map(each -> Path.of(each, "kubectl"))
                .filter(Files::isExecutable)
                .findFirst()
                .orElse(Path.of("kubectl"));
        assumeTrue(Files.isExecutable(kubectl), "there is no kubectl");
        Path directory = ROOT.resolve("overlays").resolve(overlay);
        Process build = new ProcessBuilder(kubectl.toString(), "kustomize", directory.toString())
                .redirectError(folder.resolve("errors").toFile())
                .start();
        String yaml = new String(build.getInputStream().readAllBytes(), UTF_8)
                .replaceAll("name: kvcache-[a-z0-9]{10}\\b", "name: kvcache");

        assertThat(build.waitFor())
                .as(Files.readString(folder.resolve("errors")))
                .isZero();
        Map<String, JsonNode> built = KustomizeBuild.documents(overlay, yaml).stream()
                .collect(Collectors.toMap(KustomizeBuild::key, each -> each));
        assertThat(KustomizeBuild.build(directory, List.of())).containsExactlyInAnyOrderEntriesOf(built);
    }
}

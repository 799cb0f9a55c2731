package io.kvcache.server.deploy;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.ContainerPort;
import io.fabric8.kubernetes.api.model.HTTPGetAction;
import io.fabric8.kubernetes.api.model.PersistentVolumeClaim;
import io.fabric8.kubernetes.api.model.PodSecurityContext;
import io.fabric8.kubernetes.api.model.Probe;
import io.fabric8.kubernetes.api.model.SecurityContext;
import io.fabric8.kubernetes.api.model.Service;
import io.fabric8.kubernetes.api.model.ServicePort;
import io.fabric8.kubernetes.api.model.Volume;
import io.fabric8.kubernetes.api.model.VolumeMount;
import io.fabric8.kubernetes.api.model.networking.v1.NetworkPolicy;
import io.fabric8.kubernetes.api.model.networking.v1.NetworkPolicyIngressRule;
import io.fabric8.kubernetes.api.model.policy.v1.PodDisruptionBudget;
import io.kvcache.server.ServerPreflight;
import io.kvcache.server.config.DiskTierConfig.DiskConfig;
import io.kvcache.server.config.ListenerConfig;
import io.kvcache.server.config.ListenerConfig.ListenProtocol;
import io.kvcache.server.config.MemoryBudget;
import io.kvcache.server.config.MemoryBudget.CgroupMemoryLimit;
import io.kvcache.server.config.ServerConfig;
import io.kvcache.server.config.ServerConfig.ShutdownConfig;
import io.kvcache.server.deploy.KubernetesManifests.ServiceMonitor;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/// Compares manifests with the settings of their own servers, and collects all contradictions.
final class KubernetesCheck {

    /// The image's user, as the Dockerfile makes it.
    private static final long USER = 7379;

    private static final int SECRET_MODE = 0440;
    private static final Map<String, String> CLIENT = Map.of("kvcache.io/client", "true");

    private final KubernetesManifests manifests;
    private final ServerConfig config;
    private final Container container;
    private final List<String> problems = new ArrayList<>();

    private KubernetesCheck(KubernetesManifests manifests) throws Exception {
        this.manifests = manifests;
        this.config = manifests.config();
        this.container = manifests.container();
    }

    static List<String> findProblems(KubernetesManifests manifests, Map<String, Set<String>> secretKeys, Path launcher)
            throws Exception {
        KubernetesCheck check = new KubernetesCheck(manifests);
        check.checkPorts();
        check.checkNodesService();
        check.checkProbes();
        check.checkMemory(launcher);
        check.checkUser();
        check.checkStop();
        check.checkSelectors();
        check.checkNetworkPolicy();
        check.checkSecrets(secretKeys);
        check.checkVolumes();
        check.checkDisks();
        check.checkMonitor();
        return check.problems;
    }

    private void equal(String what, @Nullable Object actual, @Nullable Object expected) {
        if (!Objects.equals(actual, expected)) {
            problems.add(what + ": " + actual + ", not " + expected);
        }
    }

    private void holds(String what, boolean holds) {
        if (!holds) {
            problems.add(what);
        }
    }

    /// The ports that the settings open, by the names that the manifests give them.
    private Map<String, Integer> settingsPorts() {
        Map<String, Integer> ports = new TreeMap<>();
        for (ListenerConfig listener : config.access().listeners()) {
            if (listener.socketAddress().getAddress().isLoopbackAddress()) {
                continue; // for commands within the container
            }
            ports.put(listener.name(), listener.port());
        }
        ports.put("transport", config.transport().port());
        if (config.cluster() != null) {
            ports.put("cluster", config.cluster().listen().port());
        }
        return ports;
    }

    private Map<String, Integer> containerPorts() {
        return new TreeMap<>(container.getPorts().stream()
                .collect(Collectors.toMap(ContainerPort::getName, ContainerPort::getContainerPort)));
    }

    private void checkPorts() {
        equal("container ports", containerPorts(), settingsPorts());
        Set<String> offered = new TreeSet<>();
        for (Service service : manifests.all(Service.class)) {
            for (ServicePort port : service.getSpec().getPorts()) {
                String what = "port " + port.getName() + " of "
                        + service.getMetadata().getName();
                equal(what, port.getPort(), settingsPorts().get(port.getName()));
                equal(what, port.getTargetPort().getStrVal(), port.getName());
                offered.add(port.getName());
            }
        }
        equal("ports of services", offered, settingsPorts().keySet());
        equal("ports for clients", portNames(service("kvcache")), Set.of("data", "transport"));
    }

    private Service service(String name) {
        return manifests.all(Service.class).stream()
                .filter(each -> each.getMetadata().getName().equals(name))
                .findFirst()
                .orElseThrow();
    }

    private static Set<String> portNames(Service service) {
        return service.getSpec().getPorts().stream().map(ServicePort::getName).collect(Collectors.toSet());
    }

    private void checkNodesService() {
        Service nodes = service(manifests.statefulSet().getSpec().getServiceName());
        equal("clusterIP of the nodes", nodes.getSpec().getClusterIP(), "None");
        equal("addresses that are not ready", nodes.getSpec().getPublishNotReadyAddresses(), true);
        if (config.cluster() == null) {
            equal(
                    "replicas of a server alone",
                    manifests.statefulSet().getSpec().getReplicas(),
                    1);
            return;
        }
        equal(
                "cluster.dns",
                String.valueOf(config.cluster().dns()),
                nodes.getMetadata().getName() + ":" + config.cluster().listen().port());
        equal(
                "cluster.advertise",
                String.valueOf(config.cluster().advertise()),
                config.cluster().listen().host() + ":" + config.transport().port());
    }

    private void checkProbes() {
        checkProbe("startup", container.getStartupProbe(), "/health/live");
        checkProbe("liveness", container.getLivenessProbe(), "/health/live");
        checkProbe("readiness", container.getReadinessProbe(), "/health/ready");
        Probe ready = container.getReadinessProbe();
        int seconds = ready.getPeriodSeconds() * ready.getFailureThreshold();
        holds(
                "the readiness probe fails after " + seconds + " s, not within shutdown.delay",
                seconds <= config.shutdown().delay().toSeconds());
    }

    private void checkProbe(String name, Probe probe, String path) {
        HTTPGetAction get = probe.getHttpGet();
        equal(name + " probe's path", get.getPath(), path);
        ListenerConfig listener = config.access().listeners().stream()
                .filter(each -> each.protocols().contains(ListenProtocol.PAGES))
                .findFirst()
                .orElseThrow();
        equal(name + " probe's port", containerPorts().get(get.getPort().getStrVal()), listener.port());
    }

    private void checkMemory(Path launcher) throws Exception {
        long limit = manifests.limitBytes();
        equal(
                "memory request",
                container.getResources().getRequests().get("memory"),
                container.getResources().getLimits().get("memory"));
        long files = manifests.pod().getVolumes().stream()
                .map(Volume::getEmptyDir)
                .filter(each -> each != null && "Memory".equals(each.getMedium()))
                .mapToLong(each -> each.getSizeLimit().getNumericalAmount().longValueExact())
                .sum();
        MemoryBudget here = ServerPreflight.memoryBudget(config); // with the heap of this JVM
        MemoryBudget budget = new MemoryBudget(
                flagBytes(launcher, limit, "-Xmx"),
                flagBytes(launcher, limit, "-XX:MaxDirectMemorySize="),
                here.valueBytes(),
                here.recordBytes());
        try {
            budget.requireWithin(new CgroupMemoryLimit(limit - files, "the limit less files in memory"));
        } catch (IllegalStateException tooMuch) {
            problems.add(String.valueOf(tooMuch.getMessage()));
        }
    }

    /// Returns a size that the launcher gives a server in a container with this limit.
    private static long flagBytes(Path launcher, long limit, String flag) throws Exception {
        Process bash = new ProcessBuilder(
                        "bash",
                        "-c",
                        "source \"$0\"; memory_kib() { echo " + limit / 1024 + "; }; java_flags serve;"
                                + " printf '%s\\n' \"${flags[@]}\"",
                        launcher.toString())
                .start();
        String flags = new String(bash.getInputStream().readAllBytes(), UTF_8);
        return flags.lines()
                .filter(each -> each.startsWith(flag))
                .mapToLong(each -> Long.parseLong(each.substring(flag.length(), each.length() - 1)) << 20)
                .findFirst()
                .orElseThrow(() -> new IOException("there is no " + flag + " in " + flags));
    }

    private void checkUser() {
        PodSecurityContext pod = manifests.pod().getSecurityContext();
        equal("runAsUser", pod.getRunAsUser(), USER);
        equal("runAsGroup", pod.getRunAsGroup(), USER);
        equal("fsGroup", pod.getFsGroup(), USER);
        equal("runAsNonRoot", pod.getRunAsNonRoot(), true);
        equal("seccomp profile", pod.getSeccompProfile().getType(), "RuntimeDefault");
        SecurityContext own = container.getSecurityContext();
        equal("read-only root", own.getReadOnlyRootFilesystem(), true);
        equal("privilege escalation", own.getAllowPrivilegeEscalation(), false);
        equal("dropped capabilities", own.getCapabilities().getDrop(), List.of("ALL"));
    }

    /// A server of a cluster hands over for `shutdown.drain` before it stops within `shutdown.drain` more.
    private void checkStop() {
        ShutdownConfig shutdown = config.shutdown();
        Duration stop = config.cluster() == null
                ? shutdown.delay().plus(shutdown.drain())
                : shutdown.delay().plus(shutdown.drain()).plus(shutdown.drain());
        long grace = manifests.pod().getTerminationGracePeriodSeconds();
        holds("terminationGracePeriodSeconds is " + grace + ", and a stop takes " + stop, grace > stop.toSeconds());
    }

    private Map<String, String> podLabels() {
        return manifests.statefulSet().getSpec().getTemplate().getMetadata().getLabels();
    }

    private void checkSelectors() {
        checkSelector(
                "StatefulSet", manifests.statefulSet().getSpec().getSelector().getMatchLabels());
        manifests
                .all(Service.class)
                .forEach(each -> checkSelector("Service", each.getSpec().getSelector()));
        PodDisruptionBudget budget = manifests.all(PodDisruptionBudget.class).getFirst();
        checkSelector("PodDisruptionBudget", budget.getSpec().getSelector().getMatchLabels());
        equal("maxUnavailable", budget.getSpec().getMaxUnavailable().getIntVal(), 1);
        checkSelector("NetworkPolicy", policy().getSpec().getPodSelector().getMatchLabels());
        if (manifests.statefulSet().getSpec().getReplicas() > 1) {
            checkSelector(
                    "podAntiAffinity",
                    manifests
                            .pod()
                            .getAffinity()
                            .getPodAntiAffinity()
                            .getRequiredDuringSchedulingIgnoredDuringExecution()
                            .getFirst()
                            .getLabelSelector()
                            .getMatchLabels());
            checkSelector(
                    "topologySpreadConstraints",
                    manifests
                            .pod()
                            .getTopologySpreadConstraints()
                            .getFirst()
                            .getLabelSelector()
                            .getMatchLabels());
        }
    }

    private void checkSelector(String what, Map<String, String> selector) {
        holds(
                "selector of " + what + ": " + selector,
                !selector.isEmpty() && podLabels().entrySet().containsAll(selector.entrySet()));
    }

    private NetworkPolicy policy() {
        return manifests.all(NetworkPolicy.class).getFirst();
    }

    private void checkNetworkPolicy() {
        Set<Integer> clients = new TreeSet<>();
        Set<Integer> servers = new TreeSet<>();
        Set<Integer> monitoring = new TreeSet<>();
        for (NetworkPolicyIngressRule rule : policy().getSpec().getIngress()) {
            Set<Integer> ports = rule.getPorts().stream()
                    .map(each -> each.getPort().getIntVal())
                    .collect(Collectors.toSet());
            rule.getFrom().forEach(peer -> {
                if (peer.getPodSelector() == null) {
                    monitoring.addAll(ports);
                } else if (peer.getPodSelector().getMatchLabels().equals(CLIENT)) {
                    clients.addAll(ports);
                } else {
                    checkSelector("peers", peer.getPodSelector().getMatchLabels());
                    servers.addAll(ports);
                }
            });
        }
        equal("NetworkPolicy for clients", clients, ports("data", "transport"));
        equal("NetworkPolicy for monitoring", monitoring, ports("pages"));
        equal(
                "NetworkPolicy for servers",
                servers,
                config.cluster() == null ? Set.of() : ports("cluster", "transport"));
        equal("policyTypes", policy().getSpec().getPolicyTypes(), List.of("Ingress"));
    }

    private Set<Integer> ports(String... names) {
        return Stream.of(names).map(settingsPorts()::get).collect(Collectors.toCollection(TreeSet::new));
    }

    private void checkSecrets(Map<String, Set<String>> secretKeys) {
        Set<Path> named = new TreeSet<>();
        config.access()
                .tenants()
                .forEach(tenant -> Stream.of(tenant.passwordFile(), tenant.secretFile())
                        .filter(Objects::nonNull)
                        .forEach(file -> named.add(Path.of(file))));
        named.add(Path.of(String.valueOf(config.transport().secretFile())));
        if (config.cluster() != null && config.cluster().tls() != null) {
            var tls = config.cluster().tls();
            named.addAll(Set.of(Path.of(tls.certificate()), Path.of(tls.key()), Path.of(tls.authority())));
        }
        Set<Path> mounted = new TreeSet<>();
        for (Volume volume : manifests.pod().getVolumes()) {
            if (volume.getProjected() != null) {
                equal("mode of secrets", volume.getProjected().getDefaultMode(), SECRET_MODE);
                Path folder = Path.of(mountPath(volume.getName()));
                volume.getProjected()
                        .getSources()
                        .forEach(source -> secretKeys
                                .getOrDefault(source.getSecret().getName(), Set.of())
                                .forEach(key -> mounted.add(folder.resolve(key))));
            }
        }
        equal("files of secrets", mounted, named);
    }

    private String mountPath(String volume) {
        return container.getVolumeMounts().stream()
                .filter(each -> each.getName().equals(volume))
                .map(VolumeMount::getMountPath)
                .findFirst()
                .orElse("nowhere");
    }

    private List<PersistentVolumeClaim> claims() {
        return manifests.statefulSet().getSpec().getVolumeClaimTemplates();
    }

    private void checkVolumes() {
        Set<String> volumes = new TreeSet<>();
        manifests.pod().getVolumes().forEach(each -> volumes.add(each.getName()));
        claims().forEach(each -> volumes.add(each.getMetadata().getName()));
        equal(
                "mounted volumes",
                container.getVolumeMounts().stream()
                        .map(VolumeMount::getName)
                        .collect(Collectors.toCollection(TreeSet::new)),
                volumes);
        equal("/tmp", mountPath("tmp"), "/tmp");
        equal(
                "directory of the settings",
                mountPath("settings"),
                Path.of(container.getArgs().get(2)).getParent() + "");
    }

    private void checkDisks() {
        List<DiskConfig> disks = config.disks().disks();
        equal("volumes for disks", claims().size(), disks.size());
        for (int i = 0; i < Math.min(claims().size(), disks.size()); i++) {
            PersistentVolumeClaim claim = claims().get(i);
            equal(
                    "directory of the disk",
                    disks.get(i).directory() + "",
                    mountPath(claim.getMetadata().getName()));
            long bytes =
                    KubernetesManifests.bytes(claim.getSpec().getResources().getRequests(), "storage");
            holds(
                    "a disk of " + disks.get(i).bytes() + " bytes in a volume of " + bytes
                            + ", of which 5 % are the file system's",
                    disks.get(i).bytes() <= bytes / 100 * 95);
        }
    }

    private void checkMonitor() {
        for (ServiceMonitor monitor : manifests.all(ServiceMonitor.class)) {
            List<Service> selected = manifests.all(Service.class).stream()
                    .filter(each -> each.getMetadata()
                            .getLabels()
                            .entrySet()
                            .containsAll(
                                    monitor.spec().selector().getMatchLabels().entrySet()))
                    .toList();
            equal("services of the ServiceMonitor", selected.size(), 1);
            Service service = selected.getFirst();
            monitor.spec().endpoints().forEach(each -> {
                holds(
                        "port of the ServiceMonitor: " + each.port(),
                        portNames(service).contains(each.port()));
                equal("settings' port of the ServiceMonitor", each.port(), "pages");
                equal("path of the ServiceMonitor", each.path(), "/metrics");
            });
            equal(
                    "job, as in the alerts",
                    service.getMetadata().getLabels().get(monitor.spec().jobLabel()),
                    "kvcache");
        }
    }
}

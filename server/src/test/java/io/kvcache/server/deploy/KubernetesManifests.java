package io.kvcache.server.deploy;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.Container;
import io.fabric8.kubernetes.api.model.EnvVar;
import io.fabric8.kubernetes.api.model.LabelSelector;
import io.fabric8.kubernetes.api.model.ObjectMeta;
import io.fabric8.kubernetes.api.model.PodSpec;
import io.fabric8.kubernetes.api.model.Quantity;
import io.fabric8.kubernetes.api.model.Secret;
import io.fabric8.kubernetes.api.model.Service;
import io.fabric8.kubernetes.api.model.apps.StatefulSet;
import io.fabric8.kubernetes.api.model.networking.v1.NetworkPolicy;
import io.fabric8.kubernetes.api.model.policy.v1.PodDisruptionBudget;
import io.kvcache.server.config.ConfigException;
import io.kvcache.server.config.ConfigReader;
import io.kvcache.server.config.ConfigReader.Option;
import io.kvcache.server.config.ConfigReader.Source;
import io.kvcache.server.config.HostResources;
import io.kvcache.server.config.ServerConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import tools.jackson.databind.DeserializationFeature;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.cfg.MapperConfig;
import tools.jackson.databind.introspect.Annotated;
import tools.jackson.databind.introspect.JacksonAnnotationIntrospector;
import tools.jackson.databind.json.JsonMapper;

/// The objects of an overlay in Kubernetes' types, and the settings that its servers start with.
///
/// A field that a type lacks is an error. The types of the Prometheus Operator and of cert-manager, which no library
/// of the same version has, are records here, with the fields that the manifests use.
final class KubernetesManifests {

    /// The type's own collection of unknown fields is not used, so the mapper rejects them.
    private static final JsonMapper STRICT = JsonMapper.builder()
            .enable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES)
            .annotationIntrospector(new NoAnySetter())
            .build();

    /// What the kubelet puts in place of `$(POD_IP)`.
    private static final String POD_IP = "10.0.0.5";

    private final Map<String, JsonNode> objects;

    private KubernetesManifests(Map<String, JsonNode> objects) {
        this.objects = objects;
    }

    private static final class NoAnySetter extends JacksonAnnotationIntrospector {

        private static final long serialVersionUID = 1;

        @Override
        public Boolean hasAnySetter(MapperConfig<?> config, Annotated annotated) {
            return false;
        }
    }

    record ServiceMonitor(String apiVersion, String kind, ObjectMeta metadata, MonitorSpec spec) {
        record MonitorSpec(String jobLabel, LabelSelector selector, List<Endpoint> endpoints) {}

        record Endpoint(String port, String path, String interval) {}
    }

    record Issuer(String apiVersion, String kind, ObjectMeta metadata, IssuerSpec spec) {
        record IssuerSpec(
                @Nullable SelfSigned selfSigned, @Nullable Authority ca) {}

        record SelfSigned() {}

        record Authority(String secretName) {}
    }

    record Certificate(String apiVersion, String kind, ObjectMeta metadata, CertificateSpec spec) {
        record CertificateSpec(
                String secretName,
                boolean isCA,
                String commonName,
                @Nullable List<String> dnsNames,
                @Nullable List<String> usages,
                String duration,
                String renewBefore,
                PrivateKey privateKey,
                Reference issuerRef) {}

        record PrivateKey(String algorithm, int size, String encoding) {}

        record Reference(String kind, String name) {}
    }

    /// Builds an overlay below a copy of `deploy/kubernetes`, and parses all that is in it.
    static KubernetesManifests of(Path root, String overlay, List<String> components) throws IOException {
        KubernetesManifests manifests = new KubernetesManifests(KustomizeBuild.build(
                root.resolve("overlays").resolve(overlay),
                components.stream()
                        .map(each -> root.resolve("components").resolve(each))
                        .toList()));
        manifests.objects.values().forEach(KubernetesManifests::parse);
        return manifests;
    }

    /// Parses the Secrets in `examples`, by name.
    static Map<String, Secret> exampleSecrets(Path root) throws IOException {
        Map<String, Secret> secrets = new LinkedHashMap<>();
        for (String file : List.of("secret.yaml", "tls-secret.yaml")) {
            String text = Files.readString(root.resolve("examples").resolve(file));
            Secret secret = (Secret) parse(KustomizeBuild.documents(file, text).getFirst());
            secrets.put(secret.getMetadata().getName(), secret);
        }
        return secrets;
    }

    private static Object parse(JsonNode object) {
        String type = object.path("apiVersion").stringValue() + " "
                + object.path("kind").stringValue();
        Class<?> model = switch (type) {
            case "v1 ConfigMap" -> ConfigMap.class;
            case "v1 Secret" -> Secret.class;
            case "v1 Service" -> Service.class;
            case "apps/v1 StatefulSet" -> StatefulSet.class;
            case "networking.k8s.io/v1 NetworkPolicy" -> NetworkPolicy.class;
            case "policy/v1 PodDisruptionBudget" -> PodDisruptionBudget.class;
            case "monitoring.coreos.com/v1 ServiceMonitor" -> ServiceMonitor.class;
            case "cert-manager.io/v1 Issuer" -> Issuer.class;
            case "cert-manager.io/v1 Certificate" -> Certificate.class;
            default -> throw new IllegalArgumentException(type + " is not known here");
        };
        return STRICT.treeToValue(object, model);
    }

    <T> List<T> all(Class<T> type) {
        return objects.values().stream()
                .map(KubernetesManifests::parse)
                .filter(type::isInstance)
                .map(type::cast)
                .toList();
    }

    StatefulSet statefulSet() {
        return all(StatefulSet.class).getFirst();
    }

    PodSpec pod() {
        return statefulSet().getSpec().getTemplate().getSpec();
    }

    Container container() {
        return pod().getContainers().getFirst();
    }

    /// Reads the settings as the container would: file, environment, arguments.
    ///
    /// @throws ConfigException with what `config check` would print
    ServerConfig config() throws ConfigException {
        Map<String, Option> options = new LinkedHashMap<>();
        String file = readArguments(options);
        ConfigMap settings = all(ConfigMap.class).getFirst();
        String text =
                settings.getData().getOrDefault(Path.of(file).getFileName().toString(), "");
        long limit = limitBytes();
        return new ConfigReader(new HostResources(limit, 2), environment()).read(new Source(file, text), options);
    }

    long limitBytes() {
        return bytes(container().getResources().getLimits(), "memory");
    }

    /// Returns a resource's bytes.
    static long bytes(Map<String, Quantity> resources, String name) {
        Quantity quantity = resources.get(name);
        if (quantity == null) {
            throw new IllegalArgumentException("there is no " + name + " in " + resources);
        }
        return quantity.getNumericalAmount().longValueExact();
    }

    /// Returns the file of settings, and adds what the other arguments set.
    private String readArguments(Map<String, Option> options) {
        Iterator<String> arguments = container().getArgs().iterator();
        requireArgument("serve", arguments.next());
        requireArgument("--config", arguments.next());
        String file = arguments.next();
        List<String> disks = new ArrayList<>();
        while (arguments.hasNext()) {
            String name = arguments.next();
            String text = arguments.next();
            switch (name) {
                case "--host-bytes" -> options.put("memory.host_bytes", new Option(name, text));
                case "--disk" -> disks.add(text);
                case "--set" -> options.put(text.split("=", 2)[0], new Option(name, text.split("=", 2)[1]));
                default -> throw new IllegalArgumentException("the argument " + name + " is not known here");
            }
        }
        for (int i = 0; i < disks.size(); i++) {
            options.put("disks." + i, new Option("--disk", disks.get(i)));
        }
        return file;
    }

    private static void requireArgument(String expected, String actual) {
        if (!expected.equals(actual)) {
            throw new IllegalArgumentException("the argument is " + actual + "; it should be " + expected);
        }
    }

    private Map<String, String> environment() {
        Map<String, String> environment = new LinkedHashMap<>();
        for (EnvVar variable : container().getEnv()) {
            if (variable.getValueFrom() == null) {
                environment.put(
                        variable.getName(),
                        variable.getValue().replace("$(POD_IP)", environment.getOrDefault("POD_IP", "$(POD_IP)")));
            } else if (variable.getValueFrom().getFieldRef().getFieldPath().equals("status.podIP")) {
                environment.put(variable.getName(), POD_IP);
            }
        }
        return environment;
    }
}

package io.kvcache.server.deploy;

import io.fabric8.zjsonpatch.JsonPatch;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.snakeyaml.engine.v2.api.Load;
import org.snakeyaml.engine.v2.api.LoadSettings;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;
import tools.jackson.databind.node.ObjectNode;

/// The objects that `kubectl kustomize DIR` prints, for the part of kustomize that `deploy/kubernetes` uses.
///
/// A kustomization takes its resources (files, or directories that are built likewise), lets each component change
/// them, generates its ConfigMaps and applies its patches, which are in JSON Patch (RFC 6902). It is rejected if it
/// has any other field, so nothing is left out without a word. The names of ConfigMaps lack the hash that kustomize
/// adds.
final class KustomizeBuild {

    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final Set<String> FIELDS =
            Set.of("apiVersion", "kind", "resources", "components", "configMapGenerator", "patches");

    private final Map<String, JsonNode> objects = new TreeMap<>();

    private KustomizeBuild() {}

    /// Builds a directory and lets further components change it.
    ///
    /// @return the objects by kind and name, as in `Service kvcache`
    static Map<String, JsonNode> build(Path directory, List<Path> components) throws IOException {
        KustomizeBuild build = new KustomizeBuild();
        build.apply(directory);
        for (Path component : components) {
            build.apply(component);
        }
        return build.objects;
    }

    /// Reads all documents of a file of YAML.
    static List<JsonNode> documents(String label, String yaml) {
        Load load = new Load(LoadSettings.builder().setLabel(label).build());
        List<JsonNode> documents = new ArrayList<>();
        load.loadAllFromString(yaml).forEach(each -> documents.add(JSON.valueToTree(each)));
        return documents;
    }

    static String key(JsonNode object) {
        return object.path("kind").stringValue() + " "
                + object.path("metadata").path("name").stringValue();
    }

    private void apply(Path directory) throws IOException {
        JsonNode kustomization = read(directory.resolve("kustomization.yaml")).getFirst();
        for (String field : kustomization.propertyNames()) {
            require(FIELDS.contains(field), directory + ": " + field + " is not supported here");
        }
        for (JsonNode resource : kustomization.path("resources")) {
            addResource(directory.resolve(resource.stringValue()).normalize());
        }
        for (JsonNode component : kustomization.path("components")) {
            apply(directory.resolve(component.stringValue()).normalize());
        }
        for (JsonNode generator : kustomization.path("configMapGenerator")) {
            add(configMap(directory, generator));
        }
        for (JsonNode patch : kustomization.path("patches")) {
            patch(directory, patch);
        }
    }

    private void addResource(Path resource) throws IOException {
        if (Files.isDirectory(resource)) {
            apply(resource);
        } else {
            read(resource).forEach(this::add);
        }
    }

    private void add(JsonNode object) {
        require(objects.put(key(object), object) == null, key(object) + " is there twice");
    }

    private static JsonNode configMap(Path directory, JsonNode generator) throws IOException {
        requireOnly(generator, "name", "files");
        ObjectNode map = JSON.createObjectNode();
        map.put("apiVersion", "v1").put("kind", "ConfigMap");
        map.putObject("metadata").put("name", generator.path("name").stringValue());
        ObjectNode data = map.putObject("data");
        for (JsonNode file : generator.path("files")) {
            data.put(file.stringValue(), Files.readString(directory.resolve(file.stringValue())));
        }
        return map;
    }

    private void patch(Path directory, JsonNode patch) throws IOException {
        requireOnly(patch, "target", "path");
        JsonNode target = patch.path("target");
        requireOnly(target, "kind", "name");
        String key =
                target.path("kind").stringValue() + " " + target.path("name").stringValue();
        JsonNode object = objects.get(key);
        require(object != null, directory + ": there is no " + key + " to patch");
        Path file = directory.resolve(patch.path("path").stringValue());
        objects.put(key, JsonPatch.apply(read(file).getFirst(), object));
    }

    private static List<JsonNode> read(Path file) throws IOException {
        return documents(file.toString(), Files.readString(file));
    }

    private static void requireOnly(JsonNode object, String... fields) {
        require(
                Set.copyOf(object.propertyNames()).equals(Set.of(fields)),
                object + " has other fields than " + Set.of(fields));
    }

    private static void require(boolean holds, String problem) {
        if (!holds) {
            throw new IllegalArgumentException(problem);
        }
    }
}

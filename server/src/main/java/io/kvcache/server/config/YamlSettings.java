package io.kvcache.server.config;

import io.kvcache.server.config.Settings.SettingValue;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.snakeyaml.engine.v2.api.LoadSettings;
import org.snakeyaml.engine.v2.api.lowlevel.Compose;
import org.snakeyaml.engine.v2.exceptions.MarkedYamlEngineException;
import org.snakeyaml.engine.v2.exceptions.YamlEngineException;
import org.snakeyaml.engine.v2.nodes.CollectionNode;
import org.snakeyaml.engine.v2.nodes.MappingNode;
import org.snakeyaml.engine.v2.nodes.Node;
import org.snakeyaml.engine.v2.nodes.NodeTuple;
import org.snakeyaml.engine.v2.nodes.ScalarNode;
import org.snakeyaml.engine.v2.nodes.SequenceNode;

/// Reads a YAML file and remembers the line of each value. Items of lists are named by their place, from 0.
final class YamlSettings {

    /// Settings are three levels deep. A deeper file has a list within lists, or an alias that contains itself.
    private static final int MAX_DEPTH = 8;

    private final String file;
    private final Map<String, SettingValue> settings = new LinkedHashMap<>();
    private final List<String> problems;

    private YamlSettings(String file, List<String> problems) {
        this.file = file;
        this.problems = problems;
    }

    /// Settings by path, `section.key`.
    ///
    /// @param file name for messages
    /// @param problems what is wrong is added here
    static Map<String, SettingValue> read(String file, String text, List<String> problems) {
        YamlSettings reader = new YamlSettings(file, problems);
        try {
            new Compose(LoadSettings.builder().setLabel(file).build())
                    .composeString(text)
                    .ifPresent(root -> reader.mapping("", root, 0));
        } catch (MarkedYamlEngineException malformed) {
            int line =
                    malformed.getProblemMark().map(mark -> mark.getLine() + 1).orElse(0);
            problems.add(file + ":" + line + ": " + malformed.getProblem());
        } catch (YamlEngineException malformed) {
            problems.add(file + ": " + malformed.getMessage());
        }
        return reader.settings;
    }

    private void mapping(String prefix, Node node, int depth) {
        if (!(node instanceof MappingNode mapping)) {
            problems.add(lineOf(node) + ": " + (prefix.isEmpty() ? "the file" : prefix) + " takes `key: value` lines");
            return;
        }
        for (NodeTuple entry : mapping.getValue()) {
            if (entry.getKeyNode() instanceof ScalarNode key) {
                String path = prefix.isEmpty() ? key.getValue() : prefix + "." + key.getValue();
                entry(path, entry.getValueNode(), depth + 1);
            } else {
                problems.add(lineOf(entry.getKeyNode()) + ": a name of a setting is expected here");
            }
        }
    }

    private void entry(String path, Node value, int depth) {
        if (depth > MAX_DEPTH) {
            problems.add(lineOf(value) + ": " + path + " is " + depth + " levels deep; there are up to " + MAX_DEPTH);
        } else if (value instanceof ScalarNode scalar) {
            put(path, scalar.getValue(), value);
        } else if (isEmpty(value)) {
            put(path, "", value);
        } else if (value instanceof SequenceNode list) {
            for (int i = 0; i < list.getValue().size(); i++) {
                entry(path + "." + i, list.getValue().get(i), depth + 1);
            }
        } else {
            mapping(path, value, depth);
        }
    }

    private void put(String path, String text, Node value) {
        SettingValue older = settings.put(path, new SettingValue(text, lineOf(value)));
        if (older != null) {
            problems.add(lineOf(value) + ": " + path + " is set already, at " + older.origin());
        }
    }

    /// A list or a section with nothing in it, which is as good as no value.
    private static boolean isEmpty(Node value) {
        return value instanceof CollectionNode<?> all && all.getValue().isEmpty();
    }

    private String lineOf(Node node) {
        return file + ":"
                + Optional.ofNullable(node.getStartMark())
                        .flatMap(mark -> mark)
                        .map(mark -> mark.getLine() + 1)
                        .orElse(0);
    }
}

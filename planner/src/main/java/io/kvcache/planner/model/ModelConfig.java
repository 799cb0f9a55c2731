package io.kvcache.planner.model;

import io.kvcache.core.identity.Dtype;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;
import tools.jackson.core.JacksonException;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/// The fields of a model's `config.json`, each checked when it is read. In a model of several kinds of input the
/// fields of `text_config` come first.
final class ModelConfig {

    private static final JsonMapper JSON = JsonMapper.builder().build();
    private static final int MAX_NUMBER = 100_000_000;

    private final Path file;
    private final JsonNode root;
    private final JsonNode text;

    private ModelConfig(Path file, JsonNode root) {
        this.file = file;
        this.root = root;
        JsonNode inner = root.get("text_config");
        text = inner != null && inner.isObject() ? inner : root;
    }

    /// Reads the file.
    ///
    /// @throws IllegalArgumentException that names the file, when it is not a JSON object
    static ModelConfig read(Path file) {
        try {
            JsonNode root = JSON.readTree(Files.readString(file));
            if (root.isObject()) {
                return new ModelConfig(file, root);
            }
            throw new IllegalArgumentException(file + " is JSON of another kind, must be: an object");
        } catch (IOException e) {
            throw new IllegalArgumentException(file + " cannot be read, must be: JSON in UTF-8 (" + e + ")", e);
        } catch (JacksonException e) {
            throw new IllegalArgumentException(
                    file + " cannot be read, must be: JSON in UTF-8 (" + firstLine(e) + ")", e);
        }
    }

    /// What is wrong, without where Jackson read it from.
    private static String firstLine(JacksonException e) {
        return e.getOriginalMessage().lines().findFirst().orElse("").replaceFirst(" at \\[Source.*", "");
    }

    private Optional<JsonNode> find(String field) {
        JsonNode found = text.get(field);
        if (found == null || found.isNull()) {
            found = root.get(field);
        }
        return Optional.ofNullable(found).filter(value -> !value.isNull());
    }

    /// Returns whether a field is there and not null.
    boolean has(String field) {
        return find(field).isPresent();
    }

    /// A whole number that has to be there.
    int required(String field) {
        return find(field)
                .map(value -> number(field, value, 1))
                .orElseThrow(() ->
                        new IllegalArgumentException(file + ": " + field + " is missing, must be: 1 to " + MAX_NUMBER));
    }

    /// A whole number from 1 on.
    ///
    /// @param defaultValue where the field is absent
    int positive(String field, int defaultValue) {
        return find(field).map(value -> number(field, value, 1)).orElse(defaultValue);
    }

    /// A whole number from 0 on.
    ///
    /// @return 0 where the field is absent
    int count(String field) {
        return find(field).map(value -> number(field, value, 0)).orElse(0);
    }

    private int number(String field, JsonNode value, int min) {
        if (!value.isIntegralNumber() || value.longValue() < min || value.longValue() > MAX_NUMBER) {
            throw invalid(field, value, min + " to " + MAX_NUMBER);
        }
        return value.intValue();
    }

    boolean flag(String field, boolean defaultValue) {
        return find(field)
                .map(value -> {
                    if (!value.isBoolean()) {
                        throw invalid(field, value, "true or false");
                    }
                    return value.booleanValue();
                })
                .orElse(defaultValue);
    }

    /// A text; empty where the field is absent.
    String text(String field) {
        return find(field).map(value -> string(field, value)).orElse("");
    }

    private String string(String field, JsonNode value) {
        if (!value.isString()) {
            throw invalid(field, value, "a text");
        }
        return value.stringValue();
    }

    /// Texts of an array; empty where the field is absent.
    List<String> texts(String field) {
        return elements(field).map(value -> string(field, value)).toList();
    }

    /// Whole numbers of an array, from 0 on; empty where the field is absent.
    List<Integer> numbers(String field) {
        return elements(field).map(value -> number(field, value, 0)).toList();
    }

    private Stream<JsonNode> elements(String field) {
        return find(field).stream().flatMap(value -> {
            if (!value.isArray()) {
                throw invalid(field, value, "an array");
            }
            return value.valueStream();
        });
    }

    /// The model's kind, such as `qwen3_next`.
    String modelType() {
        return text("model_type");
    }

    /// The type that weights and, unless something else is said, KV have.
    Dtype dtype() {
        String name = text(has("torch_dtype") ? "torch_dtype" : "dtype");
        return switch (name.replace("torch.", "")) {
            case "", "bfloat16" -> Dtype.BF16;
            case "float16" -> Dtype.F16;
            case "float32" -> Dtype.F32;
            default ->
                throw new IllegalArgumentException(
                        file + ": torch_dtype is '" + name + "', must be: bfloat16, float16, float32");
        };
    }

    /// The object of a field of the quantisation.
    Optional<JsonNode> quantization(String field) {
        return find("quantization_config")
                .or(() -> find("compression_config"))
                .map(value -> value.get(field))
                .filter(value -> !value.isNull());
    }

    /// The error of a field with a wrong value.
    IllegalArgumentException invalid(String field, Object value, String allowed) {
        return new IllegalArgumentException(file + ": " + field + " is " + value + ", must be: " + allowed);
    }

    /// The folder's name, or that of a file that is not called `config.json`.
    String label() {
        String name = String.valueOf(file.getFileName());
        if (!name.equals("config.json")) {
            return name.replaceFirst("\\.json$", "");
        }
        Path folder = file.toAbsolutePath().normalize().getParent();
        return folder == null || folder.getFileName() == null
                ? modelType()
                : folder.getFileName().toString();
    }
}

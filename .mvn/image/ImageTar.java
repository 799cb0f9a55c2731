import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.cloud.tools.jib.api.Containerizer;
import com.google.cloud.tools.jib.api.Jib;
import com.google.cloud.tools.jib.api.JibContainerBuilder;
import com.google.cloud.tools.jib.api.TarImage;
import com.google.cloud.tools.jib.api.buildplan.AbsoluteUnixPath;
import com.google.cloud.tools.jib.api.buildplan.FileEntriesLayer;
import com.google.cloud.tools.jib.api.buildplan.FilePermissions;
import com.google.cloud.tools.jib.api.buildplan.ImageFormat;
import com.google.cloud.tools.jib.api.buildplan.Platform;
import com.google.cloud.tools.jib.api.buildplan.Port;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Instant;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.commons.compress.archivers.tar.TarArchiveEntry;
import org.apache.commons.compress.archivers.tar.TarArchiveInputStream;
import org.apache.commons.compress.archivers.tar.TarArchiveOutputStream;

/// Makes an OCI image of a root file system that ./kvcache image has laid out:
/// ROOT FILE NAME VERSION REVISION ARCHITECTURE SECONDS VARIABLE=VALUE... The time is that of all files, in seconds since
/// 1970; the variables are the environment of a container.
///
/// Layers, from what changes least: the C library and the JVM, then the server.
final class ImageTar {

    private static final String USER = "7379:7379";
    private static final String APPLICATION = "/opt/kvcache";
    private static final List<String> WRITABLE = List.of("/var/lib/kvcache", "/tmp");

    private static final ObjectMapper JSON = new ObjectMapper();

    /// Times in nanoseconds.
    private static final String HEALTH_CHECK = """
            {"Test": ["CMD", "/usr/local/bin/kvcache", "health"],
            "Interval": 30000000000, "Timeout": 10000000000, "StartPeriod": 60000000000, "Retries": 3}
            """;

    private final Path root;
    private final Instant time;

    private ImageTar(Path root, Instant time) {
        this.root = root;
        this.time = time;
    }

    public static void main(String... arguments) throws Exception {
        Path root = Path.of(arguments[0]);
        Path file = Path.of(arguments[1]).toAbsolutePath();
        Instant time = Instant.ofEpochSecond(Long.parseLong(arguments[6]));
        Path made = Files.createTempFile(root.getParent(), "image", ".tar");
        try {
            JibContainerBuilder image = new ImageTar(root, time).image(arguments[3], arguments[4], arguments[5]);
            for (String variable : List.of(arguments).subList(7, arguments.length)) {
                int end = variable.indexOf('=');
                image.addEnvironmentVariable(variable.substring(0, end), variable.substring(end + 1));
            }
            image.containerize(Containerizer.to(TarImage.at(made).named(arguments[2]))
                    .setOfflineMode(true)
                    .setBaseImageLayersCache(root.resolveSibling("cache"))
                    .setApplicationLayersCache(root.resolveSibling("cache"))
                    .setToolName("kvcache"));
            System.out.println(addHealthCheck(made, file));
        } finally {
            Files.delete(made);
        }
    }

    private JibContainerBuilder image(String version, String revision, String architecture) throws Exception {
        FileEntriesLayer.Builder system = FileEntriesLayer.builder().setName("C library and JVM");
        FileEntriesLayer.Builder server = FileEntriesLayer.builder().setName("server");
        try (var files = Files.walk(root)) {
            for (Path file : files.filter(each -> !each.equals(root)).sorted().toList()) {
                String path = "/" + root.relativize(file);
                add(path.startsWith(APPLICATION) ? server : system, file, path);
            }
        }
        return Jib.fromScratch()
                .setPlatforms(Set.of(new Platform(architecture, "linux")))
                .setFormat(ImageFormat.OCI)
                .setCreationTime(time)
                .setFileEntriesLayers(system.build(), server.build())
                .setUser(USER)
                .setWorkingDirectory(AbsoluteUnixPath.get("/var/lib/kvcache"))
                .setExposedPorts(Port.tcp(7379), Port.tcp(9090))
                .addVolume(AbsoluteUnixPath.get("/var/lib/kvcache"))
                .setEntrypoint("/usr/local/bin/kvcache")
                .setProgramArguments("serve", "--config", "/etc/kvcache/kvcache.yaml")
                .setLabels(Map.of(
                        "org.opencontainers.image.title", "KVCache",
                        "org.opencontainers.image.description", "An LLM-serving KV-cache store",
                        "org.opencontainers.image.licenses", "Apache-2.0",
                        "org.opencontainers.image.version", version,
                        "org.opencontainers.image.revision", revision));
    }

    private void add(FileEntriesLayer.Builder layer, Path file, String path) throws Exception {
        boolean open = Files.isDirectory(file) || Files.isExecutable(file);
        String mode = path.equals("/tmp") ? "777" : open ? "755" : "644";
        layer.addEntry(
                file,
                AbsoluteUnixPath.get(path),
                FilePermissions.fromOctalString(mode),
                time,
                WRITABLE.contains(path) ? USER : "0:0");
    }

    /// Adds to the image's configuration what OCI does not know and Docker looks for, and returns the image's digest.
    private static String addHealthCheck(Path made, Path file) throws Exception {
        Map<String, byte[]> parts = new LinkedHashMap<>();
        try (TarArchiveInputStream tar = new TarArchiveInputStream(Files.newInputStream(made))) {
            for (TarArchiveEntry entry = tar.getNextEntry(); entry != null; entry = tar.getNextEntry()) {
                parts.put(entry.getName(), tar.readAllBytes());
            }
        }
        ObjectNode index = (ObjectNode) JSON.readTree(parts.get("index.json"));
        ObjectNode toManifest = (ObjectNode) index.at("/manifests/0");
        ObjectNode manifest = (ObjectNode) JSON.readTree(parts.remove(blob(toManifest)));
        ObjectNode toConfig = (ObjectNode) manifest.get("config");
        ObjectNode config = (ObjectNode) JSON.readTree(parts.remove(blob(toConfig)));
        ((ObjectNode) config.get("config")).set("Healthcheck", JSON.readTree(HEALTH_CHECK));
        put(parts, toConfig, JSON.writeValueAsBytes(config));
        put(parts, toManifest, JSON.writeValueAsBytes(manifest));
        parts.put("index.json", JSON.writeValueAsBytes(index));
        try (TarArchiveOutputStream tar = new TarArchiveOutputStream(Files.newOutputStream(file))) {
            for (Map.Entry<String, byte[]> part : parts.entrySet()) {
                TarArchiveEntry entry = new TarArchiveEntry(part.getKey());
                entry.setSize(part.getValue().length);
                entry.setModTime(0);
                tar.putArchiveEntry(entry);
                tar.write(part.getValue());
                tar.closeArchiveEntry();
            }
        }
        return toManifest.get("digest").textValue();
    }

    private static String blob(ObjectNode descriptor) {
        return "blobs/" + descriptor.get("digest").textValue().replace(':', '/');
    }

    private static void put(Map<String, byte[]> parts, ObjectNode descriptor, byte[] bytes) throws Exception {
        String hash = HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
        descriptor.put("digest", "sha256:" + hash);
        descriptor.put("size", bytes.length);
        parts.put(blob(descriptor), bytes);
    }
}

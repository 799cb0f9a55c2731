package io.kvcache.gpu.cuda;

import static java.nio.charset.StandardCharsets.UTF_8;

import io.kvcache.core.contract.TestJvm;
import io.kvcache.gpu.driver.DeviceDriver;
import io.kvcache.gpu.driver.DeviceDriver.Priority;
import io.kvcache.gpu.driver.DeviceEvent;
import io.kvcache.gpu.driver.DeviceIpc;
import io.kvcache.gpu.driver.DeviceSpan;
import io.kvcache.gpu.driver.DeviceStream;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;

/// Another process that has memory and an event to share, and does nothing else until it is ended.
public final class IpcExporterProcess implements AutoCloseable {

    /// What its memory has.
    public static final byte FILLED = 0x5B;

    private final Process process;
    private final byte[] memory;
    private final byte[] event;

    /// @param bytes of its memory
    public IpcExporterProcess(long bytes) throws IOException {
        List<String> command = new ArrayList<>(List.of(TestJvm.program()));
        command.addAll(TestJvm.FLAGS);
        command.addAll(List.of(
                "--enable-native-access=ALL-UNNAMED",
                "-Dkvcache.gpu.real=" + Boolean.getBoolean("kvcache.gpu.real"),
                "-cp",
                System.getProperty("java.class.path"),
                IpcExporterProcess.class.getName(),
                Long.toString(bytes)));
        process = new ProcessBuilder(command)
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        BufferedReader said = new BufferedReader(new InputStreamReader(process.getInputStream(), UTF_8));
        boolean told = false;
        try {
            memory = token(said.readLine());
            event = token(said.readLine());
            told = true;
        } finally {
            if (!told) {
                close();
            }
        }
    }

    private static byte[] token(String line) throws IOException {
        if (line == null) {
            throw new IOException("the other process did not start");
        }
        return HexFormat.of().parseHex(line);
    }

    /// Token of its memory.
    public byte[] memory() {
        return memory.clone();
    }

    /// Token of its event, which is reached.
    public byte[] event() {
        return event.clone();
    }

    @Override
    public void close() {
        process.destroyForcibly().onExit().join();
    }

    /// Bytes of its memory.
    public static void main(String... bytes) throws IOException {
        DeviceDriver driver = FakeCuda.reset().open();
        DeviceIpc sharing = driver.ipc();
        DeviceSpan memory = driver.allocate(Long.parseLong(bytes[0]));
        DeviceEvent event = sharing.createSharedEvent();
        DeviceStream stream = driver.openStream(Priority.NORMAL);
        stream.fill(memory, FILLED);
        stream.record(event);
        if (!event.await(60_000_000_000L)) {
            throw new IOException("the memory is not filled");
        }
        System.out.println(HexFormat.of().formatHex(sharing.exportToken(memory)));
        System.out.println(HexFormat.of().formatHex(sharing.exportToken(event)));
        int ended = System.in.read();
        System.out.println(ended);
    }
}

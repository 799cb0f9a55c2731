package io.kvcache.server;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvcache.server.net.NettyTransport.TransportKind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/// The clients of the Debian packages redis-tools and python3-redis, as they come.
@Tag("slow")
final class DebianClientsTest {

    private static final long TIMEOUT_SECONDS = 300;

    @TempDir
    private Path folder = Path.of("");

    private final TestServer server = TestServer.start(TransportKind.AUTO);

    @AfterEach
    void stop() {
        server.close();
    }

    private static void assumeInstalled(String program, String debianPackage) {
        boolean found = List.of("/usr/bin/", "/usr/local/bin/").stream()
                .anyMatch(place -> Files.isExecutable(Path.of(place + program)));
        assumeTrue(found, program + " is not here; apt-get install " + debianPackage);
    }

    private String run(String... command) throws IOException, InterruptedException {
        Path output = folder.resolve("output");
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .redirectInput(Path.of("/dev/null").toFile())
                .start();
        try {
            assertThat(process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                    .as("%s ended", command[0])
                    .isTrue();
        } finally {
            process.destroyForcibly();
        }
        return Files.readString(output, UTF_8);
    }

    private String cli(String... words) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of("redis-cli", "-p", Integer.toString(server.port())));
        command.addAll(List.of(words));
        return run(command.toArray(String[]::new)).strip();
    }

    @Test
    void givenRedisCli_whenCommandsAreTyped_thenItShowsWhatRedisWouldShow() throws Exception {
        assumeInstalled("redis-cli", "redis-tools");
        assertThat(cli("set", "k", "v")).isEqualTo("OK");
        assertThat(cli("get", "k")).isEqualTo("v");
        assertThat(cli("-3", "ttl", "k")).isEqualTo("-1");
        assertThat(cli("dbsize")).isEqualTo("1");
        assertThat(cli("--scan")).isEqualTo("k");
        assertThat(cli("-3", "hello", "3")).contains("kvcache_version");
        assertThat(cli("--bigkeys")).contains("Biggest string found");
        assertThat(cli("info", "keyspace")).contains("db0:keys=1");
        assertThat(cli("memory", "usage", "k")).isEqualTo("4096");
        assertThat(cli("--no-raw", "get", "absent")).isEqualTo("(nil)");
        assertThat(cli("command", "count")).matches("\\d+");
        assertThat(cli("client", "list")).contains(" cmd=client ", " user=default ");
        assertThat(cli("lastsave")).isEqualTo("0");
        assertThat(cli("acl", "whoami")).isEqualTo("default");
        assertThat(cli("client", "kill", "id", "1")).isEqualTo("0");
    }

    @Test
    void givenRedisBenchmark_whenRun_thenItSeesNoError() throws Exception {
        assumeInstalled("redis-benchmark", "redis-tools");
        String port = Integer.toString(server.port());
        String small = run("redis-benchmark", "-p", port, "-q", "-n", "5000", "-P", "16", "-t", "ping,set,get,mset");
        String large = run(
                "redis-benchmark",
                "-p",
                port,
                "-q",
                "-n",
                "200",
                "-c",
                "8",
                "-r",
                "1000",
                "-d",
                "1048576",
                "-t",
                "set,get");
        assertThat(small).contains("PING_INLINE", "SET", "GET", "MSET").doesNotContain("rror");
        assertThat(large).contains("SET", "GET").doesNotContain("rror");
    }

    @Test
    void givenRedisPy_whenUsedAsLmcacheDoes_thenItGetsItsBytesBack() throws Exception {
        assumeInstalled("python3", "python3-redis");
        Path script = folder.resolve("client.py");
        Files.writeString(script, """
                import asyncio, os, sys
                try:
                    import redis, redis.asyncio
                except ImportError:
                    print("SKIP"); sys.exit()
                port = int(sys.argv[1])
                plain = redis.Redis(port=port)
                assert plain.ping()
                body = os.urandom(8 << 20)
                plain.set("x@1@0@ab@half@kv_bytes", body)
                plain.set("x@1@0@ab@half@metadata", b"m" * 28)
                assert plain.exists("x@1@0@ab@half@metadata") == 1
                assert plain.get("x@1@0@ab@half@kv_bytes") == body
                assert sorted(plain.scan_iter()) == [b"x@1@0@ab@half@kv_bytes", b"x@1@0@ab@half@metadata"]
                pipe = plain.pipeline(transaction=False)
                for i in range(100):
                    pipe.set("p%d" % i, "v%d" % i)
                    pipe.get("p%d" % i)
                assert pipe.execute()[1::2] == [b"v%d" % i for i in range(100)]
                usual = plain.pipeline()
                for i in range(100):
                    usual.set("t%d" % i, "w%d" % i, ex=1000)
                    usual.get("t%d" % i)
                usual.set("t", body[: 1 << 20])
                usual.get("t")
                got = usual.execute()
                assert got[1:200:2] == [b"w%d" % i for i in range(100)] and got[201] == body[: 1 << 20]
                try:
                    plain.transaction(lambda pipe: pipe.set("t", 1), "t")
                    assert False
                except redis.ResponseError as refused:
                    assert "WATCH" in str(refused)
                assert plain.getex("t1", ex=5) == b"w1" and plain.ttl("t1") == 5
                assert plain.getdel("t1") == b"w1" and plain.exists("t1") == 0
                assert plain.time()[0] > 0 and plain.acl_whoami() == "default"
                plain.delete(*["t%d" % i for i in range(100)], "t")
                async def many():
                    client = redis.asyncio.Redis(port=port)
                    await asyncio.gather(*[client.set("a%d" % i, body[: 1 << 20]) for i in range(20)])
                    got = await asyncio.gather(*[client.get("a%d" % i) for i in range(20)])
                    assert all(value == body[: 1 << 20] for value in got)
                    await client.close()
                asyncio.run(many())
                assert plain.delete("a1", "absent") == 1
                assert plain.ttl("a2") == -1
                plain.client_setname("me")
                own = plain.client_info()
                assert own["id"] == plain.client_id() and own["name"] == "me" and own["age"] >= 0
                assert [each for each in plain.client_list() if each["id"] == str(own["id"])][0]["name"] == "me"
                assert plain.client_kill_filter(_id=str(own["id"])) == 0
                print("DONE")
                """);
        String output = run("/usr/bin/python3", script.toString(), Integer.toString(server.port()));
        assumeTrue(!output.contains("SKIP"), "no module redis; apt-get install python3-redis");
        assertThat(output).endsWith("DONE\n");
    }
}

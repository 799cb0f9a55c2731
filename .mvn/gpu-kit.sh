# shellcheck shell=bash disable=SC2154 # `root` and `logs` are the launcher's
# Sourced by kvcache: gpu_kit [DIR] packs what runs on a bare x86-64 Linux machine with NVIDIA's driver and nothing else:
# a JVM, the tests of gpu-bridge, a store over the GPU and the benchmark. On that machine: DIR/run.sh [RESULTS [STEP...]]

# As the tests and the benchmark need them; zipfs to find tests in a jar.
gpu_kit_modules=java.base,java.instrument,java.logging,java.management,java.naming,java.xml,jdk.management
gpu_kit_modules+=,jdk.unsupported,jdk.zipfs

# Only what was packed before, or nothing at all, is replaced.
gpu_kit_place() {
    local kit=$1
    if [ -e "$kit" ] && [ -n "$(ls -A "$kit")" ] && ! { [ -f "$kit/run.sh" ] && [ -f "$kit/jre.tar.xz" ]; }; then
        die "gpu-kit replaces $kit, which holds something else. Name a folder that is new, empty or an older kit."
    fi
    mkdir -p "$kit" || die "gpu-kit cannot write to $kit"
}

gpu_kit() {
    local kit=${1:-$root/.kvcache/gpu-kit} work jar
    if [ $# -gt 1 ] || [[ $kit == -* ]]; then
        die "gpu-kit takes a folder or nothing, not '$*'" 2
    fi
    gpu_kit_place "$kit"
    ensure_built || exit 1
    require_writable
    work=$root/.kvcache/gpu-kit-work
    rm -rf "$work" "$kit"
    mkdir -p "$kit/lib"
    maven -q package dependency:copy-dependencies -Dkvcache.fast -DskipTests -pl kvcache-core,tiers,gpu-bridge \
        -DincludeScope=test -DoutputDirectory="$work/lib" >"$logs/gpu-kit.log" 2>&1 ||
        { explain "$logs/gpu-kit.log" >&2 && die 'could not gather the libraries'; }
    rm -f "$work"/lib/{jcstress,jna,jopt}*.jar # of core's stress tests, which are not run there
    cp "$work"/lib/*.jar "$root"/gpu-bridge/target/kvcache-gpu-bridge-*.jar "$kit/lib/"
    for jar in kvcache-core kvcache-bench picocli jackson-; do
        cp "$root"/bench/target/{,lib/}"$jar"*.jar "$kit/lib/" 2>/dev/null || true
    done
    (cd "$root/gpu-bridge/target/test-classes" && "$JAVA_HOME/bin/jar" --create --file "$kit/lib/gpu-tests.jar" .)
    "$JAVA_HOME/bin/jlink" --add-modules "$gpu_kit_modules" --strip-debug --no-header-files --no-man-pages \
        --compress zip-0 --vm server --output "$work/jre"
    tar -C "$work" -cf - jre | xz -T0 -6 >"$kit/jre.tar.xz"
    cp "$root/gpu-bridge/src/test/python/engine.py" "$root/LICENSE" "$root/NOTICE" "$kit/"
    gpu_kit_runner >"$kit/run.sh"
    chmod +x "$kit/run.sh"
    rm -rf "$work"
    echo "$kit: $(du -sm "$kit" | cut -f1) MB; on the machine with the GPU: run.sh [RESULTS [STEP...]]"
}

gpu_kit_runner() {
    cat <<'RUN'
#!/usr/bin/env bash
# Tests and benchmarks on the first GPU: run.sh [RESULTS [STEP...]], a folder for what it writes, and what is to be
# done of: tests demo bench bench-json sizes sizes-json beside; all of it when nothing is said. What is to be known
# first is always looked at. KIT_SECONDS is the longest that a step may take, 540 when nothing is said. Who stops it
# stops all that it began.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
all='tests demo bench bench-json sizes sizes-json beside'
results=${1:-$here/results}
shift $(($# > 0))
wanted=${*:-$all}
longest=${KIT_SECONDS:-540}
if [[ $results == -* ]]; then
    echo "run.sh [RESULTS [STEP...]]: RESULTS is a folder, steps are: $all" >&2
    exit 64
fi
if ! [[ $longest =~ ^[1-9][0-9]{0,5}$ ]]; then
    echo "KIT_SECONDS is '$longest'; it takes 1 to 999999" >&2
    exit 64
fi
for name in $wanted; do
    if ! [[ " $all " == *" $name "* ]]; then
        echo "there is no step '$name'; there are: $all" >&2
        exit 64
    fi
done
mkdir -p "$results" && results=$(readlink -f "$results") && work=$(mktemp -d) || exit 65
running=

# What the step that runs has begun: its own processes are a group, and what `timeout` began is another.
stop() {
    if [ -n "$running" ]; then
        kill -- "-$running" 2>/dev/null
        [ ! -s "$work/timed" ] || kill "$(cat "$work/timed")" 2>/dev/null
        wait "$running" 2>/dev/null
    fi
    rm -rf "$work"
}
trap stop EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
tar -C "$work" -xJf "$here/jre.tar.xz" 2>/dev/null ||
    python3 -c 'import sys, tarfile; tarfile.open(sys.argv[1]).extractall(sys.argv[2])' "$here/jre.tar.xz" "$work" ||
    { echo "$here/jre.tar.xz cannot be unpacked in $work: that takes tar with xz, or python3, and 70 MB" >&2; exit 65; }
export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}/usr/local/nvidia/lib64
java=("$work/jre/bin/java" --enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow -Xmx2g
    -cp "$here/lib/*")
failed=0
outcome=()

logged() {
    "${@:2}" 2>&1 | tee "$1"
    return "${PIPESTATUS[0]}"
}

# step NAME FILE COMMAND...: runs it, keeps what it says, and remembers how it ended.
step() {
    local name=$1 file=$2 ended since=$SECONDS
    shift 2
    echo "== $name"
    set -m # a group of its own
    logged "$results/$file" "$@" </dev/null &
    running=$!
    set +m
    wait "$running"
    ended=$?
    running=
    if [ "$ended" -eq 0 ]; then
        outcome+=("$name: done in $((SECONDS - since)) s, $file")
    elif [ "$ended" -eq 77 ]; then
        outcome+=("$name: not tried, see $file")
    elif [ "$ended" -eq 124 ] || [ "$ended" -eq 137 ]; then
        outcome+=("$name: NOT DONE in $longest s, see $file")
        failed=1
    else
        outcome+=("$name: FAILED with $ended, see $file")
        failed=1
    fi
    echo "== ${outcome[-1]}"
    return "$ended"
}

# on STEP NAME FILE COMMAND...: the same if it is wanted.
on() {
    [[ " $wanted " == *" $1 "* ]] && step "${@:2}"
}

# A step that hangs takes none of the others' time.
java() {
    timeout -k 10 "$longest" "${java[@]}" "$@" &
    echo $! >"$work/timed"
    wait $!
}

json() {
    java io.kvcache.bench.cli.GpuKit "$@" --json 2>/dev/null | grep '^{'
}

first() {
    uname -srm
    nvidia-smi 2>&1 | head -20
    ldconfig -p 2>/dev/null | grep -E 'libcuda\.so|libcufile' || ls -l /usr/local/nvidia/lib64/libcuda.so.1
    echo "locked memory: $(ulimit -l) KiB; memory: $(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo '?')"
    echo "huge pages: $(cat /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null || echo '?')"
    python3 -c 'import sys; print("python", sys.version.split()[0])' 2>&1
    python3 -c 'import torch; print("torch", torch.__version__, torch.version.cuda)' 2>&1 | tail -1
    java -Dkvcache.gpu.real=true io.kvcache.gpu.kit.FirstChecks
}

# The same figures while another process computes all the time.
beside() {
    if ! python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
        echo 'not tried: it takes python3 with torch'
        return 77
    fi
    if pgrep -x nvidia-cuda-mps >/dev/null; then echo 'MPS runs'; else echo 'MPS does not run; with it, run this again'; fi
    local busy ended
    python3 -c '
import torch, time
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.time() + 1800
while time.time() < end:
    for _ in range(50):
        a @ a
    torch.cuda.synchronize()' &
    busy=$!
    trap 'kill "$busy" 2>/dev/null' EXIT
    sleep 20
    java io.kvcache.bench.cli.GpuKit
    ended=$?
    if ! kill "$busy" 2>/dev/null; then
        echo 'the process that was to be busy had ended: these are no figures beside one'
        ended=1
    fi
    wait "$busy" 2>/dev/null
    trap - EXIT
    return "$ended"
}

if ! step 'first checks' first.txt first; then
    echo 'There is no GPU here that can be used: the line "device:" says why. Nothing more was tried.'
    exit 2
fi
on tests tests tests.txt java -ea -Dkvcache.gpu.engine="$here/engine.py" -Dkvcache.gpu.real=true io.kvcache.gpu.kit.KitTests
on demo 'a store over the GPU' demo.txt java io.kvcache.bench.cli.GpuKit demo
on bench benchmark bench.txt java io.kvcache.bench.cli.GpuKit
on bench-json 'benchmark in JSON' bench.jsonl json
on sizes 'copies by size' sizes.txt java io.kvcache.bench.cli.GpuKit --sizes
on sizes-json 'copies by size in JSON' sizes.jsonl json --sizes
on beside 'benchmark beside a busy process' beside.txt beside
printf '%s\n' "== in $results" "${outcome[@]}"
exit $failed
RUN
}

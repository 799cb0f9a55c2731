# shellcheck shell=bash disable=SC2154 # `root`, `logs` and `current` are the launcher's
# Sourced by kvcache: gpu_kit [DIR] packs what runs on a bare x86-64 Linux machine with NVIDIA's driver and nothing else:
# a JVM, the tests of gpu-bridge, a store over the GPU, the benchmark and a server with engines in Python. On that machine: DIR/run.sh [RESULTS [STEP...]]

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
    local kit=${1:-$root/.kvcache/gpu-kit} work new jar
    if [ $# -gt 1 ] || [[ $kit == -* ]]; then
        die "gpu-kit takes a folder or nothing, not '$*'" 2
    fi
    gpu_kit_place "$kit"
    ensure_built || exit 1
    require_writable
    work=$root/.kvcache/gpu-kit-work
    new=$work/kit # takes the old one's place once it is whole
    rm -rf "$work"
    mkdir -p "$new/lib"
    maven -q package dependency:copy-dependencies -Dkvcache.fast -DskipTests -pl kvcache-core,tiers,gpu-bridge \
        -DincludeScope=test -DoutputDirectory="$work/lib" >"$logs/gpu-kit.log" 2>&1 ||
        { explain "$logs/gpu-kit.log" >&2 && die 'could not gather the libraries'; }
    rm -f "$work"/lib/{jcstress,jna,jopt}*.jar # of core's stress tests, which are not run there
    cp "$work"/lib/*.jar "$root"/gpu-bridge/target/kvcache-gpu-bridge-*.jar "$new/lib/"
    for jar in kvcache-core kvcache-planner kvcache-bench picocli jackson-; do
        cp "$current"/bench/{,lib/}"$jar"*.jar "$new/lib/" 2>/dev/null || true
    done
    cp "$current"/server/{,lib/}*.jar "$new/lib/"
    mkdir "$new/python"
    cp -r "$root/python/kvcache" "$root/python/tests" "$new/python/"
    find "$new/python" -name __pycache__ -prune -exec rm -rf {} +
    (cd "$root/gpu-bridge/target/test-classes" && "$JAVA_HOME/bin/jar" --create --file "$new/lib/gpu-tests.jar" .)
    "$JAVA_HOME/bin/jlink" --add-modules "$gpu_kit_modules" --strip-debug --no-header-files --no-man-pages \
        --compress zip-0 --vm server --output "$work/jre"
    tar -C "$work" -cf - jre | xz -T0 -6 >"$new/jre.tar.xz"
    cp "$root/gpu-bridge/src/test/python/engine.py" "$root/LICENSE" "$root/NOTICE" "$new/"
    git -C "$root" rev-parse --short HEAD >"$new/commit" 2>/dev/null || echo 'no commit' >"$new/commit"
    gpu_kit_runner >"$new/run.sh"
    chmod +x "$new/run.sh"
    rm -rf "$kit"
    mv "$new" "$kit"
    rm -rf "$work"
    echo "$kit: $(du -sm "$kit" | cut -f1) MB; on the machine with the GPU: run.sh [RESULTS [STEP...]]"
}

gpu_kit_runner() {
    cat <<'RUN'
#!/usr/bin/env bash
# Tests and benchmarks on the first GPU: run.sh [RESULTS [STEP...]]. RESULTS is the folder for its output. Steps are
# demo bench sizes beside serve tests; all of them by default. The first checks always run. report.txt in that folder
# contains all other files, and is rewritten after each step. KIT_SECONDS limits the time of a step, 540 by default.
# A signal that stops this script also stops all processes that it has started.
set -uo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
all='demo bench sizes beside serve tests'
results=${1:-$here/results}
shift $(($# > 0))
wanted=${*:-$all}
longest=${KIT_SECONDS:-540}
no_device=3 # as GpuSmokeChecks ends then
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
failed=0
outcome=()

# note TEXT: how a step ended, beside those of other times with the same folder.
note() {
    outcome+=("$1")
    echo "$(date -u '+%H:%M:%S') $1" >>"$results/steps.txt"
}

# All of it in one file, as far as it is known.
report() {
    {
        echo "KVCache on a GPU, $(date -u '+%Y-%m-%d %H:%M UTC'), kit of $(cat "$here/commit" 2>/dev/null || echo '?')"
        cat "$results/steps.txt"
        local file
        for file in first.txt demo.txt {bench,sizes,beside}.{txt,jsonl} serve.txt tests.txt; do
            [ -s "$results/$file" ] || continue
            printf '\n===== %s\n' "$file"
            cat "$results/$file"
        done
    } >"$results/report.part" && mv "$results/report.part" "$results/report.txt"
}

# What the step that runs has begun: its own processes are a group, and what `timeout` began is another.
stop() {
    if [ -n "$running" ]; then
        kill -- "-$running" 2>/dev/null
        [ ! -s "$work/timed" ] || kill "$(cat "$work/timed")" 2>/dev/null
        wait "$running" 2>/dev/null
        note "$name: CUT OFF, see $file"
        report
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

logged() {
    "${@:2}" 2>&1 | tee "$1"
    return "${PIPESTATUS[0]}"
}

# step NAME FILE COMMAND...: runs it, keeps what it says, and remembers how it ended.
step() {
    local ended since=$SECONDS
    name=$1 file=$2 # `stop` names them too
    shift 2
    rm -f "$results/$file" "$results/${file%.txt}.jsonl" # of another time
    echo "== $name"
    set -m # a group of its own
    logged "$results/$file" "$@" </dev/null &
    running=$!
    set +m
    wait "$running"
    ended=$?
    running=
    if [ "$ended" -eq 0 ]; then
        note "$name: done in $((SECONDS - since)) s, $file"
    elif [ "$ended" -eq 77 ]; then
        note "$name: not tried, see $file"
    elif [ "$ended" -eq 124 ] || [ "$ended" -eq 137 ]; then
        note "$name: NOT DONE, cut off after $((SECONDS - since)) s, see $file"
        failed=1
    else
        note "$name: FAILED with $ended, see $file"
        failed=1
    fi
    echo "== ${outcome[-1]}"
    report
    return "$ended"
}

# on STEP NAME FILE COMMAND...: the same if it is wanted.
on() {
    [[ " $wanted " == *" $1 "* ]] && step "${@:2}"
}

java() {
    timed "${java[@]}" "$@"
}

# A step that hangs takes none of the others' time.
timed() {
    timeout -k 10 "$longest" "$@" &
    echo $! >"$work/timed"
    wait $!
    local ended=$?
    rm -f "$work/timed" # another process may get that number
    return "$ended"
}

# Ends a process of ours; one that hangs in the driver may not end for being asked. Answers whether it was there.
end() {
    kill "$1" 2>/dev/null || return
    local i
    for i in {1..100}; do
        kill -0 "$1" 2>/dev/null || return 0
        sleep 0.1
    done
    kill -9 "$1" 2>/dev/null
    return 0
}

# What the driver says of all GPUs; it is known to hang where one of them does.
smi() {
    command -v nvidia-smi >/dev/null || return
    timeout -k 5 20 nvidia-smi "$@" 2>&1
}

facts=index,name,driver_version,vbios_version,memory.total,memory.used,pcie.link.gen.current,pcie.link.gen.max
facts+=,pcie.link.width.current,clocks.sm,clocks.mem,clocks.max.sm,power.draw,power.limit,temperature.gpu
facts+=,persistence_mode,compute_mode,mig.mode.current,ecc.mode.current,utilization.gpu

first() {
    uname -srm
    lscpu 2>/dev/null | grep -E '^(Model name|CPU\(s\)|Socket|NUMA node)'
    smi | head -20
    smi --query-gpu="$facts" --format=csv
    smi topo -m | head -20
    ldconfig -p 2>/dev/null | grep -E 'libcuda\.so|libcufile' || ls -l /usr/local/nvidia/lib64/libcuda.so.1
    echo "locked memory: $(ulimit -l) KiB; memory: $(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo '?')"
    echo "huge pages: $(cat /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null || echo '?')"
    python3 -c 'import sys; print("python", sys.version.split()[0])' 2>&1
    timeout -k 5 60 python3 -c 'import torch; print("torch", torch.__version__, torch.version.cuda)' 2>&1 | tail -1
    longest=$((longest < 150 ? longest : 150)) # that much for things that take seconds, and are here to be known
    java -Dkvcache.gpu.real=true io.kvcache.gpu.kit.GpuSmokeChecks
    local ended=$?
    [ "$ended" -eq "$no_device" ] || java io.kvcache.bench.cli.GpuKit probe
    return "$ended"
}

# Multiplies matrices, as an engine does, where there is PyTorch to do it; else turns values by a kernel of ours. Says
# `busy` once it is.
busy() {
    if timeout -k 5 60 python3 -c 'import torch; assert torch.cuda.is_available()' 2>/dev/null; then
        exec python3 -c '
import torch, time
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.time() + 1800
while time.time() < end:
    for _ in range(50):
        a @ a
    torch.cuda.synchronize()
    print("busy", "with products of matrices (PyTorch)", flush=True)'
    fi
    exec "${java[@]}" io.kvcache.bench.cli.GpuKit busy
}

# The same figures while another process has the GPU work all the time.
beside() {
    if pgrep -x nvidia-cuda-mps >/dev/null; then echo 'MPS runs'; else echo 'MPS does not run; with it, run this again'; fi
    local other ended waited=0
    longest=$((longest < 180 ? longest : 180)) # less than the tests, which come after it, would miss
    busy >"$work/busy" 2>&1 &
    other=$!
    trap 'kill "$other" 2>/dev/null' EXIT
    until grep -q '^busy' "$work/busy"; do
        if ! kill -0 "$other" 2>/dev/null || [ $((waited += 1)) -gt 120 ]; then
            echo 'the process that is to be busy does not begin:'
            cat "$work/busy"
            return 1
        fi
        sleep 1
    done
    head -1 "$work/busy"
    java io.kvcache.bench.cli.GpuKit --lines "$results/beside.jsonl"
    ended=$?
    if ! end "$other"; then
        echo 'the process that was to be busy had ended: these are no figures beside one'
        ended=1
    fi
    trap - EXIT
    return "$ended"
}

# `serve --gpu` and engines in Python, vLLM's connector with a double of vLLM among them.
serve() {
    if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
        echo 'there is no python3 of 3.9 or later'
        return 77
    fi
    cd "$here/python" || return
    export KVCACHE_TEST_CUDA=libcuda.so.1 PYTHONDONTWRITEBYTECODE=1
    export KVCACHE_TEST_SERVER="${java[*]:0:4} -cp '$here/lib/*' io.kvcache.server.cli.Kvcache"
    timed python3 -m unittest -v tests.test_gpu
}

step 'first checks' first.txt first
if [ "$?" -eq "$no_device" ]; then
    echo 'There is no GPU here that can be used: the line "device:" says why. Nothing more was tried.'
    exit 2
fi
on demo 'a store over the GPU' demo.txt java io.kvcache.bench.cli.GpuKit demo
on bench benchmark bench.txt java io.kvcache.bench.cli.GpuKit --lines "$results/bench.jsonl"
on sizes 'copies by size' sizes.txt java io.kvcache.bench.cli.GpuKit --sizes --lines "$results/sizes.jsonl"
on beside 'benchmark beside a busy process' beside.txt beside
on serve 'a server with engines in Python' serve.txt serve
on tests tests tests.txt java -ea -Dkvcache.gpu.engine="$here/engine.py" -Dkvcache.gpu.real=true io.kvcache.gpu.kit.GpuKitTestRunner
report
printf '%s\n' "== all of it is in $results/report.txt" "${outcome[@]}"
exit $failed
RUN
}

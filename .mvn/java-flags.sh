# shellcheck shell=bash
# Sourced by kvcache and deploy/entry: java_flags COMMAND [ARGUMENTS] sets the array `flags` to what the JVM is started with.

# The machine's memory, or the container's when that is less.
memory_kib() {
    local file kib limit
    kib=$(awk '/MemTotal/ { print $2 }' /proc/meminfo 2>/dev/null || true)
    kib=${kib:-8388608}
    for file in /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes; do
        limit=$(cat "$file" 2>/dev/null || true)
        if [[ $limit =~ ^[0-9]{1,18}$ ]] && ((limit / 1024 < kib)); then
            kib=$((limit / 1024))
        fi
    done
    echo "$kib"
}

# Fewer files than a JVM with our libraries opens end in a class that is not found. The JVM raises its soft limit by itself.
least_files=256
require_files() {
    local limit
    limit=$(ulimit -Hn)
    if [[ $limit =~ ^[0-9]+$ ]] && ((limit < least_files)); then
        echo "kvcache: this process may open $limit files (ulimit -Hn); KVCache takes $least_files and up, and a server one more" \
            "for each connection: raise it to 65536 (systemd: LimitNOFILE=65536, docker: --ulimit nofile=65536)" >&2
        exit 1
    fi
}

# Host memory is mapped, not heap: 2 GiB are for metadata, as much again for the buffers of the network; on a machine (or in
# a container) of less than 8 GiB, a quarter of it each. A server whose heap is full ends, to be started again.
java_flags() {
    local -a own
    require_files
    local mebibytes=2048 fourth=$(($(memory_kib) / 4096))
    ((fourth >= mebibytes)) || mebibytes=$((fourth > 128 ? fourth : 128))
    flags=(--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow
        "-Xmx${mebibytes}m" "-XX:MaxDirectMemorySize=${mebibytes}m" -XX:+UseCompactObjectHeaders)
    # What Agrona needs, below Aeron. For all commands, though few use it: what was rehearsed is mapped under the same
    # exports alone.
    flags+=(--add-exports java.base/jdk.internal.misc=ALL-UNNAMED)
    # What Jlama's tensors are typed by.
    case $1 in chat-server | engines) flags+=(--add-modules jdk.incubator.vector) ;; esac
    [ "$1" != serve ] || flags+=(-XX:+ExitOnOutOfMemoryError)
    read -ra own <<<"${KVCACHE_JAVA_OPTS:-}"
    flags+=("${own[@]}")
}

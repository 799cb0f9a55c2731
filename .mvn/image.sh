# shellcheck shell=bash disable=SC2154 # `root` and `logs` are the launcher's
# Sourced by kvcache: image [FILE], or image --root DIR, makes what docs/operations.md calls the image: the server's one
# jar, a JVM of the modules that it needs, and the C library of this machine. There is no shell in it. With --gpu it has
# all that a GPU takes but NVIDIA's driver, which is the host's.

# What the server and its libraries use, and jcmd and JFR to look at it.
image_modules=java.logging,java.management,java.naming,java.net.http,java.sql,java.xml,jdk.jcmd,jdk.jfr,jdk.management,jdk.unsupported

# The names that LMCache's charts and operator use for its server and its probe.
image_names=(/usr/local/bin/kvcache /usr/local/bin/lmcache_server
    /opt/venv/bin/{lmcache_server,lmcache_experimental_server,python3})

# What a container has in its environment; with --gpu also what NVIDIA's runtimes read, and where they leave the driver:
# nvidia-smi in /usr/bin and libraries in a folder that the loader knows, or both in GKE's folder.
image_environment=(PATH=/usr/local/bin:/opt/java/bin LANG=C.UTF-8)
image_gpu_environment=("${image_environment[0]}:/usr/bin:/usr/local/nvidia/bin" "${image_environment[1]}"
    LD_LIBRARY_PATH=/usr/local/nvidia/lib64 NVIDIA_VISIBLE_DEVICES=all 'NVIDIA_DRIVER_CAPABILITIES=compute,utility')

image() {
    local gpu file tree='' version made
    local -a rest environment=("${image_environment[@]}")
    take_gpu "$@"
    set -- "${rest[@]}"
    file=$logs/kvcache-image$gpu.tar
    case $#:${1:-} in
        0:) ;;
        2:--root) tree=$2 ;;
        1:-* | 1:) die "image takes a FILE, --root DIR or nothing, and --gpu, not '$*'; a name that begins with a dash takes ./ before it" 2 ;;
        1:*) file=$1 ;;
        *) die "image takes a FILE, --root DIR or nothing, and --gpu, not '$*'" 2 ;;
    esac
    [ "$(uname -s)" = Linux ] || die 'image takes the C library of the machine, which has to be Linux'
    if [ -n "$gpu" ]; then
        [ "$(uname -m)" = x86_64 ] || die "image --gpu needs x86-64, as JCuda does, not $(uname -m)"
        environment=("${image_gpu_environment[@]}")
    fi
    [ -x "$JAVA_HOME/bin/jlink" ] || die "image needs jlink, which $JAVA_HOME/bin has not: a JDK 25, not a JRE"
    command -v ldd >/dev/null || die 'image needs ldd, of the C library'
    if [ -n "$tree" ]; then
        tree=$(realpath -m "$tree")
        [ ! -e "$tree" ] || { [ -d "$tree" ] && [ -z "$(ls -A "$tree")" ]; } ||
            die "image needs a folder that is new or empty; $tree is not"
        mkdir -p "$tree" || die "image cannot write to $tree"
    else
        require_target image "$file"
    fi
    one_jar jar server kvcache.jar kvcache.oneJar help ${gpu:+--gpu} "$logs/image/kvcache.jar" >/dev/null
    made=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)
    rm -rf "$logs/image/root"
    lay_out "$logs/image/root" "$made" "$gpu"
    if [ -n "$tree" ]; then
        cp -a "$logs/image/root/." "$tree" || die "image cannot write to $tree"
        echo "$tree: $(du -sm "$tree" | cut -f1) MB; the user is 7379, the entry point /usr/local/bin/kvcache"
        [ -z "$gpu" ] || echo "The environment is to have ${environment[*]}"
        chown 7379:7379 "$tree/tmp" "$tree/var/lib/kvcache" 2>/dev/null ||
            echo "Not given to the user, as only root can: chown 7379:7379 $tree/tmp $tree/var/lib/kvcache"
        return
    fi
    version=$("$logs/image/root/opt/java/bin/java" -cp "$logs/image/kvcache.jar" io.kvcache.server.cli.Kvcache version |
        awk 'NR == 1 { print $2 }')
    pack "$logs/image/root" "$file" "$version" "$version$gpu" "$made" "${environment[@]}"
}

# The root file system, all of one time: the JVM takes an AOT cache only with the jar of that time.
lay_out() {
    local place=$1 made=$2 gpu=$3 name library
    echo 'Linking the JVM, and rehearsing a start…' >&2
    mkdir -p "$place"/{opt,etc/kvcache,tmp,var/lib/kvcache,opt/kvcache,usr/local/bin,opt/venv/bin}
    "$JAVA_HOME/bin/jlink" --add-modules "$image_modules" --strip-debug --no-header-files --no-man-pages \
        --output "$place/opt/java" >"$logs/image.log" 2>&1 || { explain "$logs/image.log" >&2; exit 1; }
    if [ -n "$gpu" ]; then
        # JCuda finds it there, and unpacks none to /tmp, from which containers often run nothing (noexec).
        mkdir -p "$place/usr/lib" && cp "$root"/gpu-bridge/target/classes/lib/libJCudaDriver-*.so "$place/usr/lib/"
        echo 'include /etc/ld.so.conf.d/*.conf' >"$place/etc/ld.so.conf" # where runtimes name the driver's folder
    fi
    # It fails where one library of the JVM does not find another, as they do once they are loaded. The driver's is the
    # host's; what it needs of the C library, JCuda's needs too.
    { find "$place" -type f \( -name java -o -name '*.so' \) -exec ldd {} + 2>/dev/null || true; } |
        awk -v java="$place" '$2 == "=>" { $1 = $3 } $1 ~ "^/" && index($1, java) != 1 && !/:$|libcuda\.so/ { print $1 }' | sort -u |
        while read -r library; do
            mkdir -p "$place${library%/*}"
            cp -L "$library" "$place$library"
        done
    [ -n "$(find "$place"/lib* -name 'ld-*')" ] || die 'ldd does not name the C library that the JVM uses'
    for name in dns files; do # what looks up names, where it is not in the C library itself
        for library in /lib/*/libnss_"$name".so.2 /lib/*/libresolv.so.2 /lib64/libnss_"$name".so.2 /lib64/libresolv.so.2; do
            [ ! -e "$library" ] || { mkdir -p "$place${library%/*}" && cp -L "$library" "$place$library"; }
        done
    done
    for name in /usr/share/doc/libc6/copyright /usr/share/licenses/glibc/COPYING \
        ${gpu:+/usr/share/doc/libstdc++6/copyright /usr/share/licenses/libgcc/COPYING.RUNTIME}; do
        [ ! -e "$name" ] || { mkdir -p "$place${name%/*}" && cp -L "$name" "$place$name"; }
    done
    printf 'root:x:0:0:root:/:/none\nkvcache:x:7379:7379:KVCache:/var/lib/kvcache:/none\n' >"$place/etc/passwd"
    printf 'root:x:0:\nkvcache:x:7379:\n' >"$place/etc/group"
    echo 'hosts: files dns' >"$place/etc/nsswitch.conf"
    cp "$root/deploy/kvcache.yaml" "$place/etc/kvcache/"
    cp "$logs/image/kvcache.jar" "$place/opt/kvcache/"
    cp "$root/LICENSE" "$root/NOTICE" "$place/opt/kvcache/"
    # One line for the kernel: the JVM, and what it is given before the names and arguments that it is called by.
    printf '%s\n' -Xmx32m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:+UseCompactObjectHeaders \
        --enable-native-access=ALL-UNNAMED -cp /opt/kvcache/kvcache.jar io.kvcache.server.image.ImageEntry \
        >"$place/opt/kvcache/entry.args"
    for name in "${image_names[@]}"; do
        echo '#!/opt/java/bin/java @/opt/kvcache/entry.args' >"$place$name"
        chmod 755 "$place$name"
    done
    find "$place" -exec touch -h -d "@$made" {} +
    rehearse_image "$place" "$made"
}

# Starts take half the time with what this leaves; without it they go on as before.
rehearse_image() {
    local place=$1 made=$2
    local -a flags
    KVCACHE_JAVA_OPTS='' java_flags rehearse
    if "$place/opt/java/bin/java" "${flags[@]}" -XX:AOTCacheOutput="$place/opt/kvcache/kvcache.aot" \
        -cp "$place/opt/kvcache/kvcache.jar" io.kvcache.server.cli.Kvcache rehearse >>"$logs/image.log" 2>&1; then
        touch -d "@$made" "$place/opt/kvcache/kvcache.aot"
    else
        rm -f "$place/opt/kvcache/kvcache.aot"
        echo "image: starts will be slower, as the rehearsal of one failed; see $logs/image.log" >&2
    fi
}

pack() {
    local place=$1 file=$2 version=$3 tag=$4 made=$5 architecture digest
    shift 5
    case $(uname -m) in
        x86_64) architecture=amd64 ;;
        aarch64) architecture=arm64 ;;
        *) die "image knows amd64 and arm64, not $(uname -m)" ;;
    esac
    if [ ! -d "$logs/image/jib" ]; then
        maven -q -f "$root/.mvn/image/pom.xml" dependency:copy-dependencies -DoutputDirectory="$logs/image/jib.new" \
            >"$logs/image.log" 2>&1 || { explain "$logs/image.log" >&2; exit 1; }
        mv -T "$logs/image/jib.new" "$logs/image/jib"
    fi
    if ! digest=$("$JAVA_HOME/bin/java" -cp "$logs/image/jib/*" "$root/.mvn/image/ImageTar.java" "$place" "$file" \
        "kvcache:$tag" "$version" "$(git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown)" "$architecture" "$made" \
        "$@" 2>"$logs/image.log"); then
        explain "$logs/image.log" >&2
        exit 1
    fi
    echo "$file: kvcache:$tag for linux/$architecture, $(du -m "$file" | cut -f1) MB, $digest"
    echo "docker load -i $file, podman load -i $file, or skopeo copy oci-archive:$file docker://REGISTRY/kvcache:$tag"
}

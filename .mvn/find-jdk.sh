# Sourced by mvnw and kvcache: find_jdk prints the home of a JDK 25 or later, or says what to install.

jdk_major() {
    local release=$1/release
    [ -x "$1/bin/javac" ] && [ -r "$release" ] || { echo 0; return; }
    sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$release"
}

find_jdk() {
    local candidate on_path
    on_path=$(command -v javac 2>/dev/null || true)
    [ -n "$on_path" ] && on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
    for candidate in "${JAVA_HOME:-}" "$on_path" /usr/lib/jvm/*25* /usr/lib/jvm/* \
        "$HOME"/.sdkman/candidates/java/25* "$HOME"/.jdks/*25* /opt/*jdk*25* \
        /Library/Java/JavaVirtualMachines/*25*/Contents/Home; do
        [ -n "$candidate" ] && [ -d "$candidate" ] || continue
        if [ "$(jdk_major "$candidate")" -ge 25 ] 2>/dev/null; then
            echo "$candidate"
            return 0
        fi
    done
    cat >&2 <<'MESSAGE'
kvcache: no JDK 25 found.
  Looked at JAVA_HOME, javac on the PATH, /usr/lib/jvm, ~/.sdkman, ~/.jdks and /opt.
  Install one, for example the package temurin-25-jdk or openjdk-25-jdk, or set JAVA_HOME to its folder.
MESSAGE
    return 1
}

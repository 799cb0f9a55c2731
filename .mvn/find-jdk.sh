# shellcheck shell=bash
# Sourced by mvnw and kvcache: find_jdk prints the home of a JDK 25 or later, or says what to install.
# KVCACHE_JDK_SEARCH, folders separated by colons, replaces the places looked at after JAVA_HOME and the PATH.

jdk_major() {
    local release=$1/release
    if [ -x "$1/bin/javac" ] && [ -r "$release" ]; then
        sed -n 's/^JAVA_VERSION="\([0-9]*\).*/\1/p' "$release"
    fi
}

find_jdk() {
    local candidate on_path major older='' home=${HOME:-/nonexistent}
    local -a places=(/usr/lib/jvm/*25* /usr/lib/jvm/* "$home"/.sdkman/candidates/java/25* "$home"/.jdks/*25*
        /opt/*jdk*25* /usr/local/*jdk*25* /Library/Java/JavaVirtualMachines/*25*/Contents/Home)
    [ -z "${KVCACHE_JDK_SEARCH:-}" ] || IFS=: read -ra places <<<"$KVCACHE_JDK_SEARCH"
    on_path=$(command -v javac 2>/dev/null || true)
    [ -z "$on_path" ] || on_path=$(dirname "$(dirname "$(readlink -f "$on_path")")")
    for candidate in "${JAVA_HOME:-}" "$on_path" "${places[@]}"; do
        [ -d "$candidate" ] || continue
        major=$(jdk_major "$candidate")
        if [ "${major:-0}" -ge 25 ]; then
            echo "$candidate"
            return 0
        fi
        [ "${major:-0}" = 0 ] || [[ $older == *"  $candidate "* ]] || older+="  $candidate is JDK $major."$'\n'
    done
    cat >&2 <<MESSAGE
kvcache: no JDK 25 found.
  Looked at JAVA_HOME, javac on the PATH, and ${KVCACHE_JDK_SEARCH:-/usr/lib/jvm, ~/.sdkman, ~/.jdks, /opt, /usr/local}.
${older}  Install one, for example the package temurin-25-jdk or openjdk-25-jdk, or set JAVA_HOME to its folder.
MESSAGE
    return 1
}

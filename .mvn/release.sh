# shellcheck shell=bash disable=SC2154 # `root` and `logs` are the launcher's
# Sourced by kvcache: release VERSION [DIR] makes what is published of a version. docs/releasing.md says how to go on.

# From a clone of what is committed, so that it holds nothing else, and the same bytes when it is made again.
release() {
    local version=${1:-} folder source=$logs/release made
    if [ $# -lt 1 ] || [ $# -gt 2 ] || ! [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]]; then
        die "release takes a VERSION such as 1.2.3, and a DIR or nothing, not '$*'" 2
    fi
    folder=$(realpath -m "${2:-$logs/release-$version}")
    if [ -e "$folder" ] && [ -n "$(ls -A "$folder")" ]; then
        die "release needs a folder that is new or empty; $folder is not"
    fi
    command -v git >/dev/null || die 'release needs git; apt-get install git'
    command -v python3 >/dev/null || die 'release needs python3, 3.9 or later; apt-get install python3'
    [ -e "$root/.git" ] || die "release needs a clone with its history, which $root is not"
    [ -z "$(git -C "$root" status --porcelain)" ] || echo 'release: what is not committed is left out' >&2
    require_writable
    mkdir -p "$folder" || die "release cannot write to $folder"
    rm -rf "$source"
    git clone -q "$root" "$source"
    made=$(TZ=UTC git -C "$source" log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd)
    set_version "$source" "$version"
    echo "Building $version of $(git -C "$source" rev-parse --short HEAD); the whole log is $logs/release.log" >&2
    local -a options=(-Dkvcache.fast -Dkvcache.release -Dkvcache.oneJar -DskipTests)
    options+=("-Dproject.build.outputTimestamp=$made" "-DaltDeploymentRepository=folder::file://$folder/maven")
    [ -z "${MAVEN_GPG_KEY:-}" ] || options+=(-Dkvcache.sign)
    if ! maven -f "$source/pom.xml" deploy "${options[@]}" 2>&1 | tee "$logs/release.log" | show_modules >&2; then
        explain "$logs/release.log" >&2
        exit 1
    fi
    find "$folder/maven" -name 'maven-metadata.xml*' -delete # has the time, and the repository makes its own
    cp "$source/server/target/kvcache.jar" "$folder/kvcache-$version.jar"
    cp "$source/server/target/bom.json" "$folder/kvcache-$version.cdx.json"
    python3 -B "$source/python/build_backend.py" "$folder" >&2
    # shellcheck disable=SC2094 # it leaves itself out
    (cd "$folder" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
    rm -rf "$source"
    echo "$folder: $(find "$folder" -type f | wc -l) files, $(du -sm "$folder" | cut -f1) MB," \
        "$([ -n "${MAVEN_GPG_KEY:-}" ] && echo signed || echo 'not signed, as there is no MAVEN_GPG_KEY')"
}

set_version() {
    local source=$1 version=$2
    sed -i "s,<version>[0-9.]*-SNAPSHOT</version>,<version>$version</version>," "$source"/pom.xml "$source"/{*,engines/*}/pom.xml
    sed -i "s,^version = .*,version = \"$version\"," "$source/python/pyproject.toml"
}

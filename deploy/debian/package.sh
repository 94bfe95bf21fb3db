#!/bin/sh
# `make deb`: makes dist/blocktill_VERSION_ARCH.deb of the wheel, for this release and its Python.
# What it needs is fetched now, as wheels, by pinned hashes.
set -eu; umask 022
cd "$(dirname "$0")/../.."
. /etc/os-release
work=$(mktemp -d) root=$work/root opt=$root/opt/blocktill doc=$root/usr/share/doc/blocktill
trap 'rm -rf "$work"' EXIT
/usr/bin/python3 -m venv --without-pip "$opt"
pip() {
  build/wheel/bin/python -m pip --disable-pip-version-check --quiet --python "$opt/bin/python" \
    install --no-compile "$@"
}
pip --only-binary :all: --require-hashes -r requirements.txt \
  -r requirements/postgres.txt -r requirements/redis.txt -r requirements/socks.txt
pip --no-index --no-deps dist/blocktill-*.whl
# Nothing may name the folder that it was made in, and of the programs only ours are for users.
find "$opt/bin" -type f ! -name blocktill -delete
sed -i '1c #!/opt/blocktill/bin/python' "$opt/bin/blocktill"
sed -i '/^command/d' "$opt/pyvenv.cfg"
find "$opt" \( -name RECORD -o -name REQUESTED -o -name direct_url.json -o -name .gitignore \
  -o -name __pycache__ -o -path "$opt/include" -o -path "$opt/share" \) -prune -exec rm -r {} +
find "$opt/lib" -type f -exec chmod 644 {} +
install -d "$root/DEBIAN" "$root/usr/bin" "$root/usr/share/lintian/overrides" "$doc"
install deploy/debian/blocktill "$root/usr/bin"
(cd deploy/debian && install preinst postinst prerm postrm "$root/DEBIAN")
install -m 644 deploy/debian/templates "$root/DEBIAN"
install -m 644 deploy/debian/lintian-overrides "$root/usr/share/lintian/overrides/blocktill"
install -m 644 LICENSE "$doc/copyright"
gzip -9n < CHANGELOG.md > "$doc/CHANGELOG.md.gz"
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}"
"$opt/bin/python" -B deploy/debian/generate.py "$root"
# A newer release of the system has a newer Python, and so a package of its own.
version=$(ls dist/blocktill-*.whl | cut -d- -f2)+$ID${VERSION_ID:-} arch=$(dpkg --print-architecture)
minor=$(/usr/bin/python3 -c 'import sys; print(sys.version_info.minor)')
sed -e "s/@VERSION@/$version/; s/@ARCH@/$arch/; s/@SIZE@/$(du -sk "$root" | cut -f1)/" \
  -e "s/@PYTHON@/3.$minor/; s/@NEXT@/3.$((minor + 1))/" \
  -e "s|@HOME@|$(sed -n 's/^Homepage = "\(.*\)"/\1/p' pyproject.toml)|" \
  deploy/debian/control > "$root/DEBIAN/control"
printf 'blocktill (%s) stable; urgency=medium\n\n  * CHANGELOG.md.gz has them.\n\n -- %s  %s\n' \
  "$version" "$(sed -n 's/^Maintainer: //p' deploy/debian/control)" \
  "$(LC_ALL=C date -uRd "@$SOURCE_DATE_EPOCH")" | gzip -9n > "$doc/changelog.gz"
(cd "$root" && find opt usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum > DEBIAN/md5sums)
dpkg-deb --root-owner-group --build "$root" "dist/blocktill_${version}_$arch.deb"

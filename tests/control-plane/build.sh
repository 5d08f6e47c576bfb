#!/usr/bin/env bash
# Builds the programs named (all, where none is) from the modules pinned here into the folder given first, unless the
# folder has them from these very modules already. Exits 3 where there is no Go to build with.
set -euo pipefail
out=${1:?usage: build.sh FOLDER [PROGRAM...]}
shift
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$(dirname "${BASH_SOURCE[0]}")"
programs=("$@")
[ ${#programs[@]} -gt 0 ] || programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl)

# Two at a time would build each other's files.
if command -v flock >/dev/null; then
  exec 9>"$out/.lock"
  flock 9
fi

release=$(awk '$1 == "k8s.io/kubernetes" { print $2; exit }' go.mod)
pins=$(cat go.mod go.sum | sha256sum | cut -c1-16)
missing=()
# What was built from these pins, and is as it was then: half a copy is none.
stamp() { [ -x "$out/$1" ] && echo "$pins $(cksum <"$out/$1")"; }
for program in "${programs[@]}"; do
  is=$(stamp "$program") && [ "$is" = "$(cat "$out/.$program" 2>/dev/null)" ] || missing+=("$program")
done
[ ${#missing[@]} -gt 0 ] || exit 0

command -v go >/dev/null || {
  echo "No Go toolchain found. Install one (https://go.dev/dl), or set KUBEBUILDER_ASSETS to a folder with the programs." >&2
  exit 3
}
minor=${release#v1.}
minor=${minor%%.*}
version="-X k8s.io/component-base/version.gitVersion=$release -X k8s.io/component-base/version.gitMajor=1 \
  -X k8s.io/component-base/version.gitMinor=$minor -X k8s.io/client-go/pkg/version.gitVersion=$release"
for program in "${missing[@]}"; do
  case $program in
    etcd) package=go.etcd.io/etcd/server/v3 ;;
    *) package=k8s.io/kubernetes/cmd/$program ;;
  esac
  echo "building $program ($release and what it needs; minutes, once)" >&2
  # Whoever is interrupted leaves nothing behind that the next run would believe.
  rm -f "$out/.$program"
  GOWORK=off CGO_ENABLED=0 go build -mod=readonly -trimpath -ldflags "-s -w $version" -o "$out/.$program.new" "$package"
  mv "$out/.$program.new" "$out/$program"
  stamp "$program" >"$out/.$program"
done

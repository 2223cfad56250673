#!/bin/bash
# Assemble the guest of the rig: OUTDIR/vmlinuz, OUTDIR/initrd.cpio and OUTDIR/versions.json.
# usage: build-guest.sh OUTDIR
#
# The guest is made only of Debian packages, downloaded by apt and unpacked into a scratch tree: none of them is
# installed on this machine. From that tree we pick the kernel, a few modules, a few programs and the libraries those
# need, and pack them as an initramfs, which is the guest's whole file system.
#
# RIG_KERNEL=backports: the kernel of Debian's backports instead of the release's, and the programs for its TLS (tlshd does
# the handshakes) of a release that has them.
set -euo pipefail
[ $# -eq 1 ] || { sed -n '2,3p' "$0" >&2; exit 2; }
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
OUT=$(cd "$1" && pwd)
export PATH=$PATH:/usr/sbin:/sbin LC_ALL=C

PACKAGES="busybox-static coreutils dash e2fsprogs ibverbs-providers ibverbs-utils iproute2 kmod libaio1 libibverbs-dev
 libnuma1 nvme-cli perftest rdmacm-utils util-linux xfsprogs"
MODULES="virtio_pci virtio_net virtio_console rdma_rxe ib_uverbs ib_umad rdma_ucm crc32_generic crc32_pclmul
 crc32c_generic sch_netem nvme_rdma nvme_tcp nvmet_rdma nvmet_tcp ext4 xfs"
# The kernels of backports have secrets and TLS for NVMe over Fabrics, and look for algorithms by name.
BACKPORTS_MODULES="nvme_keyring tls dh_generic hmac sha256_generic sha512_generic gcm aesni_intel ghash_generic"
NEWER_RELEASE=trixie
NEWER_PACKAGES="ktls-utils nvme-cli"
NEWER_PROGRAMS="tlshd nvme"
PROGRAMS="dash ip kmod rdma setsid ss stdbuf tc timeout
 nvme blkdiscard e2fsck mkfs.ext4 mkfs.xfs xfs_repair
 ibv_devices ibv_devinfo ibv_rc_pingpong ibv_srq_pingpong ibv_uc_pingpong ibv_ud_pingpong
 cmtime rdma_client rdma_server rping rstream ucmatose udaddy
 ib_atomic_bw ib_atomic_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat ib_write_bw ib_write_lat"

RIG_KERNEL=${RIG_KERNEL:-}
CODENAME=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
NEWER_ARCHIVES=$OUT/newer-archives NEWER_TREE=$OUT/newer-tree
[ "$RIG_KERNEL" != backports ] || { MODULES="$MODULES $BACKPORTS_MODULES"; mkdir -p "$NEWER_ARCHIVES/partial"; }
ARCHIVES=$OUT/archives TREE=$OUT/tree ROOT=$OUT/root
rm -rf "$TREE" "$ROOT"
mkdir -p "$ARCHIVES/partial" "$TREE/usr" "$ROOT/usr"

# --- download -----------------------------------------------------------------------------------------------------
# Against an empty package status apt names every dependency, also those this machine already has. The kernel comes
# without its dependencies: they would only build an initramfs for a machine that boots from a disk. So does fio: it
# is linked to all of Ceph and Gluster (80 MB), which nobody calls here.
suite() { # options of apt that know only the suite $1 of this machine's mirror
  local folder=$OUT/suites/$1 mirror
  if [ ! -d "$folder" ]; then
    mirror=$(apt-get indextargets --format '$(RELEASE) $(REPO_URI)' | awk -v release="$CODENAME" '$1 == release {print $2; exit}')
    [ -n "$mirror" ] || { echo "apt has no mirror of $CODENAME" >&2; return 1; }
    mkdir -p "$folder/partial"
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $1 main" > "$folder.list"
    apt-get -qq $(suite_options "$folder") update || { rm -r "$folder"; return 1; }
  fi
  suite_options "$folder"
}
suite_options() { echo "-o Dir::Etc::SourceList=$1.list -o Dir::Etc::SourceParts=- -o Dir::State::Lists=$1"; }

download() {
  mkdir -p "$OUT/dpkg"
  : > "$OUT/dpkg/status"
  local from=""
  local options="-qq -o APT::Sandbox::User= -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache="
  apt-get $options -o Dir::State::status="$OUT/dpkg/status" -o Dir::Cache::archives="$ARCHIVES/" \
    install -y --no-install-recommends --download-only $PACKAGES &&
    if [ "$RIG_KERNEL" = backports ]; then
      from=$(suite "$CODENAME-backports") &&
        apt-get $options $(suite "$NEWER_RELEASE") -o Dir::State::status="$OUT/dpkg/status" \
          -o Dir::Cache::archives="$NEWER_ARCHIVES/" install -y --no-install-recommends --download-only $NEWER_PACKAGES
    fi &&
    KERNEL_PACKAGE=$(apt-cache $from -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= depends linux-image-amd64 |
      awk '$1 == "Depends:" && $2 ~ /^linux-image-/ {print $2}') &&
    [ -n "$KERNEL_PACKAGE" ] && (cd "$ARCHIVES" && apt-get $options download fio &&
      apt-get $options $from download "$KERNEL_PACKAGE")
}
# A machine without package lists, or with stale ones, fails here the first time.
download 2> "$OUT/apt.log" || { apt-get update -qq && download; }
KERNEL=${KERNEL_PACKAGE#linux-image-}

# --- unpack -------------------------------------------------------------------------------------------------------
merge_usr() { # make /bin, /sbin, /lib and /lib64 of the tree $1 links into /usr
  local d
  for d in bin sbin lib lib64; do mkdir -p "$1/usr/$d"; ln -s "usr/$d" "$1/$d"; done
}
merge_usr "$TREE"
for archive in "$ARCHIVES"/*.deb; do
  dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$TREE" --exclude=./usr/share
done
LIBRARIES=usr/lib/x86_64-linux-gnu

# --- kernel and modules -------------------------------------------------------------------------------------------
merge_usr "$ROOT"
cp "$TREE/boot/vmlinuz-$KERNEL" "$OUT/vmlinuz"
modules=usr/lib/modules/$KERNEL
depmod -b "$TREE" "$KERNEL"
mkdir -p "$ROOT/$modules"
cp "$TREE/$modules"/modules.{builtin,builtin.modinfo,order} "$ROOT/$modules/"
for module in $MODULES; do
  modprobe -d "$TREE" -S "$KERNEL" --show-depends "$module"
done | awk '$1 == "insmod" {print $2}' | sort -u | while read -r file; do
  (cd "$TREE" && cp --parents "$modules/${file#*"/modules/$KERNEL/"}" "$ROOT/")
done
depmod -b "$ROOT" "$KERNEL"

# --- programs -----------------------------------------------------------------------------------------------------
copy_elf() { # copy one program or library of the tree, with the libraries it is linked to
  local file=$1 library
  (cd "$TREE" && cp -L --parents "$file" "$ROOT/")
  "$TREE/lib64/ld-linux-x86-64.so.2" --library-path "$TREE/$LIBRARIES" --list "$TREE/$file" |
    grep -o "$TREE/[^ ]*" | while read -r library; do
    library=${library#"$TREE/"}
    case $library in lib/* | lib64/*) library=usr/$library ;; esac
    (cd "$TREE" && cp -L --parents "$library" "$ROOT/")
  done
}
cp "$TREE/bin/busybox" "$ROOT/usr/bin/"
"$TREE/bin/busybox" --list | grep -vx busybox | while read -r applet; do ln -s busybox "$ROOT/usr/bin/$applet"; done
for program in $PROGRAMS; do
  rm -f "$ROOT/usr/bin/$program" # busybox has an applet of that name; we want the real one
  for file in "usr/bin/$program" "usr/sbin/$program"; do
    if [ -e "$TREE/$file" ]; then copy_elf "$file"; continue 2; fi
  done
  echo "no program $program in the packages" >&2
  exit 1
done
# Not busybox's sh: it prefers its own applets (ip, timeout, modprobe) to the programs above.
ln -sf dash "$ROOT/usr/bin/sh"
for alias in modprobe insmod rmmod lsmod; do ln -sf kmod "$ROOT/usr/bin/$alias"; done
ln -s ../bin/kmod "$ROOT/usr/sbin/modprobe" # where the kernel looks for it

# What is loaded at run time and so is not in any list of linked libraries: the verbs provider, the library behind
# stdbuf, and libgcc_s, which pthread_exit wants.
for file in $LIBRARIES/libibverbs/librxe-rdmav*.so usr/libexec/coreutils/libstdbuf.so $LIBRARIES/libgcc_s.so.1; do
  copy_elf "$(cd "$TREE" && echo $file)"
done
(cd "$TREE" && cp --parents etc/libibverbs.d/rxe.driver "$ROOT/")

stand_in() { # a library $1 in the place of the real one: the functions that fio imports of it, whose names begin with $2
  local functions=$OUT/functions versions=""
  nm -D --undefined-only "$TREE/usr/bin/fio" | awk '{print $NF}' | grep "^$2" | sort -u > "$functions"
  if grep -q @ "$functions"; then # the linker of the guest asks for the versions, too
    awk -F@ 'NF > 1 {of[$NF] = of[$NF] " " $1 ";"} END {for (v in of) print v " { global:" of[v] " };"}' \
      "$functions" > "$functions.map"
    versions=-Wl,--version-script,$functions.map
  fi
  sed 's/@.*//; s/.*/void &(void) { __builtin_trap(); }/' "$functions" |
    gcc -shared -fPIC -w -Wl,-soname,"$1" $versions -o "$TREE/$LIBRARIES/$1" -x c -
  rm -f "$functions" "$functions.map"
}
stand_in libgfapi.so.0 glfs_
stand_in libnbd.so.0 nbd_
stand_in libpmem.so.1 pmem_
stand_in libpmemblk.so.1 pmemblk_
stand_in librados.so.2 rados_
stand_in librbd.so.1 rbd_
copy_elf usr/bin/fio

gcc -O1 -Wall -o "$TREE/usr/bin/rigverbs" "$HERE/guest/rigverbs.c" -isystem "$TREE/usr/include" \
  -L "$TREE/$LIBRARIES" -Wl,-rpath-link,"$TREE/$LIBRARIES" -libverbs
copy_elf usr/bin/rigverbs
gcc -O1 -Wall -o "$TREE/usr/bin/rocev2-agent" "$HERE/../../../packages/inspect/src/commands/conform/agent.c" -isystem "$TREE/usr/include" \
  -L "$TREE/$LIBRARIES" -Wl,-rpath-link,"$TREE/$LIBRARIES" -libverbs
copy_elf usr/bin/rocev2-agent
gcc -O2 -Wall -pthread -o "$TREE/usr/bin/rigio" "$HERE/guest/rigio.c"
copy_elf usr/bin/rigio

if [ "$RIG_KERNEL" = backports ]; then # with the loader and the libraries of their own release
  merge_usr "$NEWER_TREE"
  for archive in "$NEWER_ARCHIVES"/*.deb; do
    dpkg-deb --fsys-tarfile "$archive" | tar -x --keep-directory-symlink -C "$NEWER_TREE" --exclude=./usr/share
  done
  mkdir -p "$ROOT/opt/newer"
  for program in $NEWER_PROGRAMS; do
    cp "$NEWER_TREE/usr/sbin/$program" "$ROOT/opt/newer/"
    "$NEWER_TREE/lib64/ld-linux-x86-64.so.2" --library-path "$NEWER_TREE/$LIBRARIES" --list "$NEWER_TREE/usr/sbin/$program" |
      grep -o "$NEWER_TREE/[^ ]*" | xargs cp -L -t "$ROOT/opt/newer"
    rm -f "$ROOT/usr/bin/$program" "$ROOT/usr/sbin/$program"
    printf '#!/bin/sh\nexec /opt/newer/ld-linux-x86-64.so.2 --library-path /opt/newer /opt/newer/%s "$@"\n' "$program" > "$ROOT/usr/bin/$program"
    chmod +x "$ROOT/usr/bin/$program"
  done
fi

# --- the rest of a root file system -------------------------------------------------------------------------------
mkdir -p "$ROOT"/{etc,dev,proc,sys,run,tmp,root,mnt,var}
ln -s ../run "$ROOT/var/run"
echo 'root:x:0:0:root:/root:/bin/sh' > "$ROOT/etc/passwd"
echo 'root:x:0:' > "$ROOT/etc/group"
printf '127.0.0.1 localhost\n::1 localhost\n' > "$ROOT/etc/hosts"
echo 'hosts: files' > "$ROOT/etc/nsswitch.conf"
install -m 755 "$HERE/guest/init" "$ROOT/init"
install -m 755 "$HERE/guest/rig-agent" "$ROOT/usr/bin/rig-agent"

# Uncompressed: an emulated processor copies faster than it inflates.
(cd "$ROOT" && find . | sort | "$TREE/bin/busybox" cpio -o -H newc -R 0:0 2> /dev/null) > "$OUT/initrd.cpio"

version() { dpkg-deb -f "$(echo "$ARCHIVES/$1"_*.deb)" Version; }
cat > "$OUT/versions.json" <<JSON
{
  "kernel": "$KERNEL",
  "kernelPackage": "$(version "$KERNEL_PACKAGE")",
  "rdmaCore": "$(version ibverbs-providers)",
  "perftest": "$(version perftest)",
  "iproute2": "$(version iproute2)",
  "nvmeCli": "$(version nvme-cli)",
  "fio": "$(version fio)"
}
JSON
rm -rf "$ARCHIVES" "$TREE" "$ROOT" "$OUT/dpkg" "$OUT/suites" "$NEWER_ARCHIVES" "$NEWER_TREE"

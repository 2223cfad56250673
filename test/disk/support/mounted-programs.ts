/** Programs on a file system on the disk under test: fio with verification, and PostgreSQL. No error may reach them, and all checks have to be clean in the end. */

/** Size of the file system: it leaves a place behind it where the disk itself is watched. */
export const FILES_MIB = 1000;

/** Written to measure the disk, before everything else. */
const PROBE_MIB = 8;
/** What `pgbench -i` writes for each unit of its scale (100,000 rows): about 15 MiB of rows, as much of log, and indexes. */
const SCALE_MIB = 40;
const SCALE_MAX = 5;
/** Aim for the time of `pgbench -i`. */
const SET_UP_S = 60;
const SET_UP_LIMIT_S = 400;

/** Leaves the time of the probe in `probe_ms`, and the scale of the database that fits the speed of the disk in `scale`. */
const PROBE = `start=$(date +%s%N); dd if=/dev/urandom of=fs/probe bs=1M count=${PROBE_MIB} conv=fsync status=none; rm fs/probe
  probe_ms=$(( ($(date +%s%N) - start) / 1000000 + 1 ))
  scale=$(( ${(PROBE_MIB * SET_UP_S * 1000) / SCALE_MIB} / probe_ms )); scale=$(( scale < 1 ? 1 : scale > ${SCALE_MAX} ? ${SCALE_MAX} : scale ))
  echo "the disk wrote ${PROBE_MIB} MiB in $probe_ms ms: scale $scale"`;

/** For the start and the end of the database, which takes longer than the default of 60 s on a busy machine. */
const PG_CTL_LIMIT_S = 600;
const UNMOUNT_LIMIT_S = 60;

/** Unmounts a folder, again while it is busy; then says which processes use it. */
const UNMOUNT = `unmount() {
    mountpoint -q "$1" || return 0
    for i in $(seq ${UNMOUNT_LIMIT_S}); do why=$(umount "$1" 2>&1) && return; sleep 1; done # timer: asks again
    echo "$why; in use by:" >&2
    for link in $(find /proc/[0-9]*/{cwd,root,exe,fd} -lname "$PWD/$1" -o -lname "$PWD/$1/*" 2>/dev/null); do
      echo "$link $(tr '\\0' ' ' < "\${link%/[cref]*}/cmdline")" >&2; done
    return 1
  }`;

/** Runs beside the file system; leaves the longest wait for one transaction, in ms, in `stall-database`. */
const DATABASE = `
  bin=$(echo /usr/lib/postgresql/*/bin); as="runuser -u postgres --"
  chmod 711 "$PWD"; mkdir -p fs/pg sock log; chown postgres fs/pg sock log
  $as $bin/initdb --data-checksums -D fs/pg > initdb.log
  $as $bin/pg_ctl -w -t ${PG_CTL_LIMIT_S} -D fs/pg -o "-k $PWD/sock -c listen_addresses=" -l "$PWD/log/server" start > /dev/null
  trap '$as $bin/pg_ctl -D fs/pg -m immediate stop || true' EXIT
  cd log
  timeout ${SET_UP_LIMIT_S} $as $bin/pgbench -h "$PWD/../sock" -i -s $scale -q postgres 2> /dev/null || {
    echo "pgbench -i -s $scale failed or took more than ${SET_UP_LIMIT_S} s; the disk wrote ${PROBE_MIB} MiB in $probe_ms ms" >&2; exit 1; }
  $as $bin/pgbench -h "$PWD/../sock" -c 4 -T $RUN_SECONDS -l --log-prefix=transactions postgres > pgbench.out
  cat pgbench.out; grep -q 'failed transactions: 0 ' pgbench.out
  cat transactions* | awk '{ if ($3 > max) max = $3 } END { printf "%d", max / 1000 }' > ../stall-database
  cd ..; $as $bin/pg_amcheck --install-missing --heapallindexed -h "$PWD/sock" postgres
  $as $bin/pg_ctl -w -t ${PG_CTL_LIMIT_S} -D fs/pg stop > /dev/null; trap - EXIT
  $as $bin/pg_checksums --check -D fs/pg`;

/**
 * Everything in a mount namespace of its own, for `RUN_SECONDS`, with the database if `OUTAGE_DATABASE` is not empty; leaves the longest wait for one request of fio, in ms, in `stall-files`. The file `mounted`
 * says when it begins.
 */
export const MOUNTED_PROGRAMS = `unshare --mount --propagation private bash -eu -o pipefail <<'MOUNTED'
  ${UNMOUNT}
  mkdir -p m fs
  nbdfuse m/nbd "$U" & fuse=$!
  loop=
  # While nbdfuse is there: a file system that is still mounted when the last process ends waits for a server that has ended, and so does every losetup of this machine.
  trap '[ -z "$loop" ] || { unmount fs || umount -l fs || true; losetup -d $loop; }' EXIT
  for i in $(seq 100); do [ -e m/nbd ] && break; sleep 0.1; done # timer: asks again
  loop=$(losetup -f --show m/nbd)
  mkfs.ext4 -q -F $loop ${FILES_MIB}M; mount $loop fs
  [ -z "$OUTAGE_DATABASE" ] || { ${PROBE}
  }
  touch mounted
  if [ -n "$OUTAGE_DATABASE" ]; then (${DATABASE.replaceAll('\n', '\n    ')}
  ) & database=$!; fi
  fio --name=f --directory=fs --rw=randrw --bs=4k --size=32m --ioengine=psync --direct=1 --fsync=32 --rate_iops=200 --verify=crc32c \
    --verify_fatal=1 --verify_backlog=256 --time_based --runtime=$RUN_SECONDS --output-format=json --output=fio.json
  python3 -c 'import json; j = json.load(open("fio.json"))["jobs"][0]; print(int(max(j[k]["lat_ns"]["max"] for k in ("read", "write", "sync")) / 1e6), end="")' > stall-files
  if [ -n "$OUTAGE_DATABASE" ]; then wait $database; fi
  sync; unmount fs; e2fsck -fn $loop; losetup -d $loop; loop=
  unmount m
  wait $fuse
  for file in stall-*; do echo "longest wait, $file: $(cat $file) ms"; done\nMOUNTED`;

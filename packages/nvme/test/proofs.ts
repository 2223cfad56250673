/**
 * What has to be seen with a real Linux kernel: five proofs, each by tests of the suites here, on Debian's kernel 6.1 and on that of its backports, 6.12.
 * A test that is not here fails the run, and a row of docs/results.md that is not there fails a quick test: the table cannot lose one silently.
 */

/** Kernels, as the columns of the table name them. */
export const KERNELS = ['6.1', '6.12'] as const;
export type Kernel = (typeof KERNELS)[number];

/** A row of the table. */
export interface Proof {
  /** 1 to 5. */
  readonly number: number;
  /** The test with its suites, as vitest prints it. */
  readonly test: string;
  /** The kernels that it has to pass on. */
  readonly kernels: readonly Kernel[];
}

/** What each of the proofs shows. */
export const PROOF_TITLES: Readonly<Record<number, string>> = {
  1: 'commands: discover, connect, list, id-ctrl, smart-log, disconnect, again',
  2: 'file systems, fio with verification, recipes of blktests',
  3: 'loss, a target that leaves and returns or is suspended, multipath',
  4: "the kernel's target with our host",
  5: 'two guests, one namespace, reservations',
};

const AUDIT = 'both sides have kept the rules that a capture shows';
const proofs = (suite: string, kernels: readonly Kernel[], tests: readonly (readonly [number, string])[]): Proof[] =>
  tests.map(([number, test]) => ({ number, test: `${suite} > ${test}`, kernels }));

const BLKTESTS = ['rdma', 'tcp'].flatMap((transport): Array<[number, string]> => {
  const recipes = `recipes of blktests over ${transport}`;
  return [
    [2, `${recipes} > nvme/014, 018, 019, 021, 023: flush, beyond the end, deallocate, list, SMART`],
    [2, `${recipes} > nvme/040: the controller is reset under fio, which sees no error`],
    [3, `${recipes} > nvme/061: the target goes and comes back under fio, by Ctrl-C and by SIGKILL`],
  ];
});

/** All rows. */
export const PROOFS: readonly Proof[] = [
  ...proofs('rocev2 nvme target', KERNELS, [
    [1, 'nvme-rdma > discovers, connects, and tells what there is; again with more queues'],
    [1, 'nvme-tcp > discovers, connects, and tells what there is; again with more queues'],
    [1, 'a host that may not connect, and a name that there is not, are refused'],
    [2, 'nvme-rdma > makes, mounts, trims and checks ext4'],
    [2, 'nvme-tcp > makes, mounts, trims and checks ext4'],
    [2, 'the guide goes from nothing to a mounted file system'],
    [2, 'a disk that grows, a namespace that comes, and one that goes'],
    [2, 'writes that fail by rule are errors of the disk, and no others'],
    [3, 'multipath > leaves RDMA for TCP when its port becomes inaccessible, and TCP for RDMA'],
    [3, 'multipath > leaves RDMA for TCP when no packet of RDMA passes any more, and finds it again'],
    [3, 'a target that is suspended for 30 s costs time, and no error'],
    [4, 'our host at nvmet > serves its disk over rdma through NBD, also when the port was shut in between'],
    [4, 'our host at nvmet > serves its disk over tcp through NBD, also when the port was shut in between'],
    [4, 'our host at nvmet > finds what it has, and is refused where it may not connect'],
    [3, AUDIT],
  ]),
  ...proofs('rocev2 nvme target under fio', KERNELS, [
    [2, "'rdma' over IPv6, loss '0': device, 'xfs', check"],
    [2, "'tcp' over IPv6, loss '0': device, 'ext4', check"],
    ...BLKTESTS,
    [3, "'rdma' over IPv4, loss '0.001': device, 'ext4', check"],
    [3, "'rdma' over IPv4, loss '0.01': device, 'ext4', check"],
    [3, AUDIT],
  ]),
  ...proofs(
    'rocev2 nvme target under fio with a loss of 1 %',
    ['6.12'],
    [
      [3, 'blocks of 4 KiB to 1 MiB over RDMA: device, ext4, check'],
      [3, AUDIT],
    ],
  ),
  ...proofs('reservations of an NVMe target', KERNELS, [
    [5, 'the host without the reservation cannot write; a host that preempts it can, and the other no more'],
    [5, AUDIT],
  ]),
  ...proofs(
    'NVMe over Fabrics with secrets and TLS',
    ['6.12'],
    [
      [1, 'the kernel as host > DH-HMAC-CHAP over nvme-rdma, in one direction and in both; a wrong secret'],
      [1, 'the kernel as host > DH-HMAC-CHAP over nvme-tcp, in one direction and in both; a wrong secret'],
      [1, 'the kernel as host > TLS with a key of version 0; without TLS, and with another key'],
      [1, 'the kernel as host > TLS with a key of version 1; without TLS, and with another key'],
      [4, 'our host at nvmet > DH-HMAC-CHAP in both directions; a wrong secret of each side'],
      [4, 'our host at nvmet > TLS with a key of version 0, which our host finds; another key'],
      [4, 'our host at nvmet > TLS with a key of version 1, which our host finds; another key'],
      [1, AUDIT],
    ],
  ),
].sort((a, b) => a.number - b.number);

/** Hosts and targets that prove who they are, and TLS: a newer Linux kernel, which has both, at our target; its own target under our host. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { describeWithRig } from '../../../test/interop/support/describe-on-rig.js';
import { startRocev2 } from '../../../test/interop/support/rocev2.js';
import { casesOfRound } from '../../../test/support/rounds.js';
import { EXIT_NO_CONNECTION } from '../../command/src/exit.js';
import { NvmeTlsKey } from '../src/auth/tls-key.js';
import { connect, KernelGuest, NQN, until } from './kernel-guest.js';

const KERNEL_NQN = 'nqn.2026-11.example:kernel';
/** Our host, by two names: of one the target wants a proof, of the other a key of TLS. */
const PROVEN = { nqn: 'nqn.2026-11.example:proven-host', port: 4421 };
const SECURE = { nqn: 'nqn.2026-11.example:secure-host', port: 4422 };
const NVMET = '/sys/kernel/config/nvmet';
const TLS_KEY = NvmeTlsKey.format(Buffer.alloc(32, 5));
const OTHER_TLS_KEY = NvmeTlsKey.format(Buffer.alloc(32, 6));
/** rigio over 1 MiB: what it wrote at random is there. */
const VERIFIED = 'rigio /dev/nvme0n1 0 1048576 4096 4 1 1';

/** TLS is over TCP alone. */
const TRANSPORTS = casesOfRound(['rdma', 'tcp']);
const OPTIONS = { kernel: 'backports', isAudited: TRANSPORTS.includes('rdma') } as const;

await describeWithRig('NVMe over Fabrics with secrets and TLS', OPTIONS, (rig) => {
  const guest = new KernelGuest(rig);
  const bind = () => ['--disk', 'memory', '--size', '64MiB', '--bind', guest.host4];
  const file = (name: string, ...lines: string[]) => {
    const path = join(guest.folder, name);
    writeFileSync(path, `${lines.join('\n')}\n`, { mode: 0o600 });
    return path;
  };
  const newSecret = async (hash: number) => (await guest.run(`nvme gen-dhchap-key --hmac=${hash}`)).trim();
  /** The kernel knows a key by what nvme-cli derives of it. */
  const insertKey = (key: string, hostNqn: string, nqn: string, version: number) =>
    guest.run(
      `nvme check-tls-key --keydata=${key} --identity=${version} --hostnqn=${hostNqn} --subsysnqn=${nqn} --insert`,
    );
  const refused = async (transport: string, more: string) => {
    const line = `nvme connect -t ${transport} -a ${guest.host4} -s 4420 -n ${NQN} ${more}`;
    expect((await guest.tryIn(1, line)).exitCode, more).not.toBe(0);
  };
  let hostNqn: string;
  let secret: string;
  let controllerSecret: string;

  beforeAll(async () => {
    hostNqn = (await guest.run('cat /etc/nvme/hostnqn')).trim();
    secret = await newSecret(1);
    controllerSecret = await newSecret(2);
    await guest.run('modprobe tls', "printf '[authenticate]\\nkeyrings=.nvme\\n' > /etc/tlshd.conf");
    await rig().background('tlshd', 'tlshd -s -c /etc/tlshd.conf');
  });

  describe('the kernel as host', () => {
    test.each(TRANSPORTS)(
      'DH-HMAC-CHAP over nvme-%s, in one direction and in both; a wrong secret',
      async (transport) => {
        const keys = file(`dhchap-${transport}`, `${hostNqn} ${secret} ${controllerSecret}`);
        await guest.startTarget([...bind(), '--dhchap-keys', keys]);
        await refused(transport, '');
        await refused(transport, `--dhchap-secret=${controllerSecret}`);
        await refused(transport, `--dhchap-secret=${secret} --dhchap-ctrl-secret=${secret}`);
        for (const proof of ['', `--dhchap-ctrl-secret=${controllerSecret}`]) {
          await guest.run(connect(transport, guest.host4, `--dhchap-secret=${secret} ${proof}`));
          expect(await guest.run(VERIFIED)).toContain('verified 256 blocks');
          await guest.run('nvme disconnect-all', until('[ ! -b /dev/nvme0n1 ]'));
        }
        const log = await guest.kernelLog();
        expect(log).toContain('controller authenticated');
        expect(log).toContain('controller authentication failed');
      },
    );

    test.each(casesOfRound([0, 1]))(
      'TLS with a key of version %i; without TLS, and with another key',
      async (version) => {
        const serve = (key: string) =>
          guest.startTarget([...bind(), '--transport', 'tcp', '--tls-keys', file('tls', `${hostNqn} ${key}`)]);
        // The host has one key: of several for the same names it takes any.
        await insertKey(TLS_KEY, hostNqn, NQN, version);
        const other = await serve(OTHER_TLS_KEY);
        await refused('tcp', '--tls');
        await other.stop();
        await serve(TLS_KEY);
        await refused('tcp', '');
        await guest.run(connect('tcp', guest.host4, '--tls'));
        expect(await guest.run(VERIFIED)).toContain('verified 256 blocks');
        expect(await guest.run('cat /sys/class/nvme/nvme0/tls_key')).toMatch(/^[0-9a-f]{8}$/m);
      },
    );
  });

  describe('our host at nvmet', () => {
    const address = () => rig().guests[0].ip4;
    const subsystem = `${NVMET}/subsystems/${KERNEL_NQN}`;

    beforeAll(async () => {
      const port = (number: number, service: number, ...more: string[]) => [
        ...[`mkdir ${NVMET}/ports/${number}`, `cd ${NVMET}/ports/${number}`],
        ...['echo ipv4 > addr_adrfam', 'echo tcp > addr_trtype', `echo ${address()} > addr_traddr`],
        ...[`echo ${service} > addr_trsvcid`, ...more, `ln -s ${subsystem} subsystems/`],
      ];
      await guest.run(
        ...['modprobe nvmet-tcp', 'mount -t configfs none /sys/kernel/config', 'truncate -s 16M /tmp/disk'],
        `mkdir ${subsystem} ${subsystem}/namespaces/1`,
        ...[PROVEN, SECURE].flatMap(({ nqn }) => [
          `mkdir ${NVMET}/hosts/${nqn}`,
          `ln -s ${NVMET}/hosts/${nqn} ${subsystem}/allowed_hosts/`,
        ]),
        `echo -n /tmp/disk > ${subsystem}/namespaces/1/device_path`,
        ...[`echo 1 > ${subsystem}/namespaces/1/buffered_io`, `echo 1 > ${subsystem}/namespaces/1/enable`],
        ...port(1, PROVEN.port),
        ...port(2, SECURE.port, 'echo tls1.3 > addr_tsas', 'echo required > addr_treq'),
      );
    });
    const list = ({ nqn, port }: typeof PROVEN, ...more: string[]) =>
      startRocev2(rig(), [
        ...['nvme', 'list', address(), '-p', `${port}`, '--nqn', KERNEL_NQN, '--host-nqn', nqn],
        ...more,
      ]).wait();
    /** Data goes through an NBD export of the namespace, and comes back. */
    const useDisk = async ({ nqn, port }: typeof PROVEN, keys: string) => {
      const path = join(guest.folder, `nbd-${port}.sock`);
      const backend = `nvme+tcp://${address()}:${port}/${KERNEL_NQN}?host-nqn=${nqn}&${keys}`;
      await guest.start(['disk', 'nbd', '--backend', backend, '--listen', `unix:${path}`]);
      await using disk = await NbdDevice.open(`nbd+unix:///?socket=${path}`);
      const data = Buffer.alloc(1 << 20, `port ${port} `);
      await disk.write(0, data);
      const read = Buffer.alloc(data.length);
      await disk.read(0, read.length, read);
      expect(read.equals(data)).toBe(true);
    };

    test('DH-HMAC-CHAP in both directions; a wrong secret of each side', async () => {
      const set = (name: string, value: string) => `echo '${value}' > ${NVMET}/hosts/${PROVEN.nqn}/${name}`;
      await guest.run(
        ...[set('dhchap_key', secret), set('dhchap_ctrl_key', controllerSecret), set('dhchap_dhgroup', 'ffdhe2048')],
      );
      const right = file('right', `${PROVEN.nqn} ${secret} ${controllerSecret}`);
      expect((await list(PROVEN, '--dhchap-keys', right)).stdout).toContain('16 MiB');
      await useDisk(PROVEN, `dhchap-keys=${right}`);
      for (const secrets of [controllerSecret, `${secret} ${secret}`]) {
        const { exitCode, stderr } = await list(PROVEN, '--dhchap-keys', file('wrong', `${PROVEN.nqn} ${secrets}`));
        // nvmet ends the connection, at times before its refusal has been read.
        expect([exitCode, stderr]).toEqual([
          EXIT_NO_CONNECTION,
          expect.stringMatching(/secret|authentic|closed the connection/i),
        ]);
      }
      expect((await list(PROVEN)).exitCode).not.toBe(0);
    });

    test.each(casesOfRound([0, 1]))(
      'TLS with a key of version %i, which our host finds; another key',
      async (version) => {
        await insertKey(TLS_KEY, SECURE.nqn, KERNEL_NQN, version);
        const keys = file('tls-keys', `${SECURE.nqn} ${TLS_KEY}`);
        const wrong = await list(SECURE, '--tls-keys', file('other-keys', `${SECURE.nqn} ${OTHER_TLS_KEY}`));
        expect([wrong.exitCode, wrong.stderr]).toEqual([EXIT_NO_CONNECTION, expect.stringContaining('no TLS')]);
        expect((await list(SECURE)).exitCode).not.toBe(0);
        expect((await list(SECURE, '--tls-keys', keys)).stdout).toContain('16 MiB');
        await useDisk(SECURE, `tls-keys=${keys}`);
      },
    );
  });
});

import { networkInterfaces } from 'node:os';
import { describe, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { freePort } from '../../../test/support/free-port.js';
import { run } from '../../cli/test/run-in-process.js';
import { parseStreamBackend } from '../../extents/src/commands/stream-backend.js';
import { controllerLines } from '../src/commands/controller-lines.js';
import { parseDisk } from '../src/commands/disk-option.js';
import { hostAddress } from '../src/commands/host-device.js';
import { parseNvmeUri } from '../src/commands/nvme-backend.js';
import type { ControllerIdentity } from '../src/host/nvme-host.js';
import { NvmeTargetServer } from '../src/live/nvme-target-server.js';

test.each([
  ['target', '--disk'],
  ['target --disk memory', 'needs a size'],
  ['target --disk tape', 'not a disk'],
  ['target --disk stream:vol@host?pks=/etc/keys', "did you mean 'psk'"],
  ['target --disk stream:vol@host?psk=', 'is not a disk in a cluster'],
  ['target --disk stream:vol@host?take-over=yes', 'is not a disk in a cluster'],
  ['target --disk stream:vol@host?psk=%', 'begins no code'],
  ['target --disk stream:vol@host?psk=a&psk=b', "'psk' is there twice"],
  ['target --disk memory --size 1MiB --transport pigeon', 'one of rdma, tcp'],
  ['target --disk memory --size 1MiB --bind nowhere', 'nowhere'],
  ['target --disk memory --size 1MiB --host somebody', 'not an NVMe qualified name'],
  ['target --disk memory --size 1MiB --fault opcode=jump', "'jump' is not a command"],
  ['remove /nowhere.sock disk it', "'it' is not a whole number"],
  ['resize /nowhere.sock disk 1 big', 'big'],
  ['ana /nowhere.sock rdma ::1 good', 'is not a state'],
  ['bench 127.0.0.1 --nqn nqn.2026-11.rocev2:disk --blocks 100', 'multiple of 512'],
  ['bench 127.0.0.1 --nqn nqn.2026-11.rocev2:disk --queues 65', 'from 1 to 64'],
  ['list 127.0.0.1 --nqn disk', 'not an NVMe qualified name'],
])('nvme %s is a mistake, and says which', async (args, words) => {
  const { exitCode, stderr } = await run(['nvme', ...args.split(' ')]);
  expect(stderr).toContain(words);
  expect(exitCode).toBe(2);
});

test('a target that is not there has the exit code of that', async () => {
  const { exitCode, stderr } = await run(['nvme', 'discover', '127.0.2.99', '-p', '9']);
  expect(stderr).toContain('cannot connect');
  expect(exitCode).toBe(3);
});

test('the name of a disk is a word or an NQN, and a backend is none', () => {
  expect(parseDisk('memory')).toEqual({ nqn: 'nqn.2026-11.rocev2:disk', backend: 'memory' });
  expect(parseDisk('db=file:/a=b')).toEqual({ nqn: 'nqn.2026-11.rocev2:db', backend: 'file:/a=b' });
  expect(parseDisk('file:/a=b').backend).toBe('file:/a=b');
  expect(parseDisk('nqn.2026-11.example:x=nbd://host/x').nqn).toBe('nqn.2026-11.example:x');
  expect(() => parseDisk('a b=memory')).toThrow('not a disk');
});

test('a namespace has a URI of its own', () => {
  const namespace = { host: '192.0.2.7', port: 4420, nqn: 'nqn.2026-11.rocev2:db', nsid: 1 };
  expect(parseNvmeUri('nvme+tcp://192.0.2.7/nqn.2026-11.rocev2:db')).toEqual({ transport: 'tcp', ...namespace });
  expect(parseNvmeUri('nvme+rdma://[fd77::1]:4421/nqn.2026-11.rocev2:db?nsid=2')).toEqual({
    ...namespace,
    transport: 'rdma',
    host: 'fd77::1',
    port: 4421,
    nsid: 2,
  });
  const keys = '?host-nqn=nqn.2014-08.org.example:h&dhchap-keys=/etc/a%26b+c=d&tls-keys=tls';
  expect(parseNvmeUri(`nvme+tcp://192.0.2.7/nqn.2026-11.rocev2:db${keys}`)).toEqual({
    ...namespace,
    transport: 'tcp',
    hostNqn: 'nqn.2014-08.org.example:h',
    dhchapKeys: '/etc/a&b+c=d',
    tlsKeys: 'tls',
  });
  for (const wrong of ['nvme+tcp://192.0.2.7', 'nvme://192.0.2.7/x', 'nvme+udp://192.0.2.7/x']) {
    expect(() => parseNvmeUri(wrong), wrong).toThrow('is not a namespace');
  }
  expect(parseNvmeUri('nvme+rdma://192.0.2.7/x?bind=192.0.2.8').bind?.text).toBe('192.0.2.8');
  expect(() => parseNvmeUri('nvme+tcp://192.0.2.7/x?nsdi=2')).toThrow(/nsdi/);
});

test('a disk in a cluster may have keys and a transport of its own, and fence its owner', () => {
  const place = { disk: 'vol', manager: [{ host: '192.0.2.8', port: 18_528 }] };
  const plain = { ...place, takeOver: false, keys: {}, transport: 'auto' };
  expect(parseStreamBackend('stream:vol@192.0.2.8')).toEqual(plain);
  expect(parseStreamBackend('stream:vol@192.0.2.8?take-over')).toEqual({ ...plain, takeOver: true });
  expect(parseStreamBackend('stream:vol@192.0.2.8?psk=/etc/a%26b&take-over')).toEqual({
    ...plain,
    takeOver: true,
    keys: { psk: '/etc/a&b' },
  });
  expect(parseStreamBackend('stream:vol@192.0.2.8?take-over&transport=tcp')).toEqual({
    ...plain,
    takeOver: true,
    transport: 'tcp',
  });
  expect(() => parseStreamBackend('stream:vol?transport=udp')).toThrow(/transport=auto\|rdma\|tcp/);
  const certificate = { cert: 'c.pem', key: 'k.pem', ca: 'ca.pem' };
  expect(parseStreamBackend('stream:vol?cert=c.pem&key=k.pem&ca=ca.pem').keys).toEqual(certificate);
});

test('a host beside its target takes another address of the loopback network', async () => {
  expect(await hostAddress('127.0.0.1')).toBe('127.0.0.2');
  expect(await hostAddress('127.0.0.2')).not.toBe('127.0.0.2');
  const own = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal);
  if (own === undefined) return; // This machine has no other address.
  await expect(hostAddress(own.address)).rejects.toThrow('RDMA needs an address for each side (give --bind');
});

describe('a command that names no subsystem', () => {
  const address = '127.0.2.33';
  const serve = (...names: string[]) =>
    NvmeTargetServer.open({
      subsystems: names.map((name) => ({ nqn: `nqn.2026-11.rocev2:${name}`, disks: [new MemoryDevice(3 << 20)] })),
      tcpAddresses: [address],
      port: 0,
    });
  const ask = (server: NvmeTargetServer, ...words: string[]) =>
    run(['nvme', ...words, '-p', `${server.ports[0].port}`]);

  test('takes the only one, and gives sizes their units', async () => {
    await using server = await serve('disk');
    const { exitCode, stdout } = await ask(server, 'list', address);
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(/^nqn\.2026-11\.rocev2:disk\n/);
    expect(stdout).toMatch(/ 1 +3 MiB +3145728 +6144 +512 +[0-9a-f]{32}/);
    const identity = await ask(server, 'id-ctrl', address);
    expect(identity).toMatchObject({ exitCode: 0, stderr: '' });
    expect(identity.stdout).toMatch(/largest transfer +1 MiB \(1048576 bytes\)\n/);
    expect(identity.stdout).toMatch(/optional commands +compare, .*verify \(0xad\)\n/);
    expect(JSON.parse((await ask(server, 'list', address, '--json')).stdout).nqn).toBe('nqn.2026-11.rocev2:disk');
  });

  test.each(['list', 'id-ctrl'])('%s names them where there are several', async (command) => {
    await using server = await serve('a', 'b');
    const { exitCode, stderr } = await ask(server, command, address);
    expect(stderr).toContain('has 2 subsystems (give --nqn: nqn.2026-11.rocev2:a, nqn.2026-11.rocev2:b)');
    expect(exitCode).toBe(2);
  });

  test('says when there is none, or none of the name', async () => {
    await using server = await serve();
    const { exitCode, stderr } = await ask(server, 'list', address);
    expect(stderr).toContain('shows no subsystem over tcp to this host');
    expect(exitCode).toBe(1);
    const wrong = await ask(server, 'list', address, '--nqn', 'nqn.2026-11.rocev2:dsk');
    expect(wrong.stderr).toMatch(/^rocev2: the target has no subsystem nqn\.2026-11\.rocev2:dsk for this host: .*\n$/);
    expect(wrong.exitCode).toBe(3);
  });
});

test('temperatures are told in degrees and kelvins, or that there are none', () => {
  const known = { optionalCommands: 0, warningKelvin: 343, criticalKelvin: 0 };
  const identity = { ...known, transferBytesMax: 4096, inCapsuleBytes: 0 } as ControllerIdentity;
  const lines = controllerLines(identity).join('\n');
  expect(lines).toContain('70 °C (343 K)');
  expect(lines).toMatch(/critical temperature +not reported/);
  expect(lines).toContain('none (0x0)');
});

test('the bench measures a namespace over both transports, and says how fast each was', async () => {
  const nqn = 'nqn.2026-11.rocev2:disk';
  const device = await openDevice({ address: '127.0.2.24' });
  try {
    const port = await freePort();
    await using _server = await NvmeTargetServer.open({
      subsystems: [{ nqn, disks: [new MemoryDevice(1 << 20)] }],
      devices: [device],
      tcpAddresses: ['127.0.2.24'],
      port,
    });
    const plan = ['--ops', 'randread,randwrite', '--blocks', '4KiB', '--depths', '4', '-D', '1ms', '--reps', '1'];
    const args = [
      '127.0.2.24',
      '-p',
      `${port}`,
      '--nqn',
      nqn,
      '--bind',
      '127.0.2.25',
      '--engine',
      'inline',
      ...plan,
      '--json',
    ];
    const { exitCode, stdout, stderr } = await run(['nvme', 'bench', ...args]);
    expect(exitCode, stderr).toBe(0);
    const rows = JSON.parse(stdout).rows as Array<{ transport: string; op: string; iops: number }>;
    expect(rows.map(({ transport, op }) => `${op} ${transport}`)).toEqual([
      'randread rdma',
      'randread tcp',
      'randwrite rdma',
      'randwrite tcp',
    ]);
    expect(rows.every(({ iops }) => iops > 0)).toBe(true);
  } finally {
    await device.close();
  }
});

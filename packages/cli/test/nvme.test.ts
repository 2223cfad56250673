import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { freePort } from '../../../test/support/free-port.js';
import { parseStreamBackend } from '../../extents/src/commands/stream-backend.js';
import { NvmeTlsKey } from '../../nvme/src/auth/tls-key.js';
import { askForChange, openControl } from '../../nvme/src/commands/control.js';
import { controllerLines } from '../../nvme/src/commands/controller-lines.js';
import { parseDisk } from '../../nvme/src/commands/disk-option.js';
import { hostAddress } from '../../nvme/src/commands/host-device.js';
import { parseNvmeUri } from '../../nvme/src/commands/nvme-backend.js';
import type { ControllerIdentity } from '../../nvme/src/host/nvme-host.js';
import { NvmeTargetServer } from '../../nvme/src/live/nvme-target-server.js';
import { openNvme } from '../../nvme/src/live/open-nvme.js';
import { type CliResult, run } from './run-in-process.js';

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

const EXPORT_HOST = 'nqn.2026-11.example:host';
const EXPORT_KEYS = [{ hostNqn: EXPORT_HOST, key: NvmeTlsKey.format(Buffer.alloc(32, 5)) }];

test.each([
  ['TCP', []],
  ['TLS', EXPORT_KEYS],
])('an NBD export of a namespace over %s: what is written to the one is in the other', async (_, tlsKeys) => {
  const store = new MemoryDevice(1 << 20);
  const nqn = 'nqn.2026-11.example:disk';
  await using server = await NvmeTargetServer.open({
    subsystems: [{ nqn, disks: [store] }],
    tcpAddresses: ['127.0.2.21'],
    port: 0,
    ...(tlsKeys.length > 0 && { tlsKeys }),
  });
  const interrupt = new AbortController();
  const port = await freePort();
  let isReady = () => {};
  const ready = new Promise<void>((resolve) => {
    isReady = resolve;
  });
  const exportFolder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
  const file = join(exportFolder, 'keys');
  writeFileSync(file, tlsKeys.map(({ hostNqn, key }) => `${hostNqn} ${key}\n`).join(''), { mode: 0o600 });
  const who = tlsKeys.length > 0 ? `?host-nqn=${EXPORT_HOST}&tls-keys=${file}` : '';
  const backend = `nvme+tcp://127.0.2.21:${server.ports[0].port}/${nqn}${who}`;
  const gateway = run(['disk', 'nbd', '--backend', backend, '--listen', `127.0.2.21:${port}`], {
    interrupted: interrupt.signal,
    onStderr: (soFar) => void (soFar.includes('Ctrl-C') && isReady()),
  });
  await ready;
  const disk = await NbdDevice.open(`nbd://127.0.2.21:${port}/disk0`);
  await disk.write(4096, Buffer.alloc(8192, 0x77));
  await disk.close();
  interrupt.abort();
  expect((await gateway).exitCode).toBe(0);
  rmSync(exportFolder, { recursive: true });
  const read = Buffer.alloc(8192);
  await store.read(4096, read.length, read);
  expect(read.every((byte) => byte === 0x77)).toBe(true);
});

describe('a running target', () => {
  const address = '127.0.2.22';
  const nqn = 'nqn.2026-11.rocev2:disk';
  let folder: string;
  let control: string;
  let port: number;
  let interrupt: AbortController;
  let target: Promise<CliResult>;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
    control = join(folder, 'control.sock');
    port = await freePort();
    interrupt = new AbortController();
    await new Promise<void>((ready) => {
      const args = ['--disk', 'memory', '--size', '1MiB', '--bind', address, '--transport', 'tcp', '-p', `${port}`];
      const faults = ['--fault', 'opcode=write:status=0x280,dnr:every=2', '--control', control];
      target = run(['nvme', 'target', '--json', ...args, ...faults], {
        interrupted: interrupt.signal,
        onStderr: (soFar) => void (soFar.includes('Ctrl-C') && ready()),
      });
    });
  });
  afterEach(async () => {
    interrupt.abort();
    await target;
    rmSync(folder, { recursive: true });
  });

  const change = (...words: string[]) => run(['nvme', words[0], control, ...words.slice(1)]);
  const list = async () => {
    const { stdout } = await run(['nvme', 'list', address, '-p', `${port}`, '--nqn', nqn, '--json']);
    return JSON.parse(stdout).namespaces.map(({ nsid, sizeBytes }: Record<string, number>) => [nsid, sizeBytes]);
  };

  test('gets namespaces, loses them, and grows them, with their data', async () => {
    const disk = await openNvme({ address, port, nqn });
    await disk.write(0, Buffer.alloc(4096, 5));
    expect(await change('resize', 'disk', '1', '2MiB')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await change('add', 'memory', '4MiB')).toMatchObject({ exitCode: 0 });
    expect(await list()).toEqual([
      [1, 2 << 20],
      [2, 4 << 20],
    ]);
    const read = Buffer.alloc(4096);
    await disk.read(0, 4096, read);
    expect(read[4095]).toBe(5);
    await disk.close();
    expect((await change('remove', 'disk', '2')).stdout).toContain('no longer has namespace 2');
    expect(await list()).toEqual([[1, 2 << 20]]);
  });

  test.each([
    [['resize', 'disk', '1', '1KiB'], 'cannot shrink'],
    [['resize', 'disk', '9', '2MiB'], 'no namespace 9'],
    [['remove', 'other', '1'], 'no subsystem'],
    [['add', 'disk=memory'], 'needs a size'],
    [['ana', 'rdma', address, 'optimized'], 'no rdma port'],
  ])('refuses %j, and goes on as before', async (words, reason) => {
    const { exitCode, stderr } = await change(...words);
    expect(stderr).toContain(reason);
    expect(exitCode).toBe(1);
    expect(await list()).toEqual([[1, 1 << 20]]);
  });

  test('tells hosts that a port is not to be used', async () => {
    await using disk = await openNvme({ address, port, nqn });
    const read = () => disk.read(0, 512, Buffer.alloc(512));
    await read();
    expect(await change('ana', 'tcp', address, 'inaccessible')).toMatchObject({ exitCode: 0 });
    await expect(read()).rejects.toThrow('ana inaccessible');
    await change('ana', 'tcp', address, 'optimized');
    await read();
  });

  test('fails commands by rule, and says how many', async () => {
    await using disk = await openNvme({ address, port, nqn });
    await disk.write(0, Buffer.alloc(512));
    await expect(disk.write(0, Buffer.alloc(512))).rejects.toThrow('write fault');
    interrupt.abort();
    const { faults } = JSON.parse((await target).stdout);
    expect(faults).toEqual([{ rule: 'opcode=write:status=0x280,dnr:every=2', struck: 1 }]);
  });

  test('is not disturbed by what is no change', async () => {
    for (const text of ['\n', '{}\n', '[1]\n', `["${'x'.repeat(9000)}`]) {
      const socket = createConnection(control);
      socket.on('error', () => {});
      socket.write(text);
      socket.resume();
      await new Promise((closed) => socket.once('close', closed));
    }
    expect(await list()).toEqual([[1, 1 << 20]]);
  });
});

describe('a control socket', () => {
  let folder: string;
  let control: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
    control = join(folder, 'control.sock');
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const open = () => openControl(control, async () => 'done');

  test('that a killed target left behind is taken over', async () => {
    const leave =
      "require('node:net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))";
    spawnSync(process.execPath, ['-e', leave, control]);
    expect(existsSync(control)).toBe(true);
    await using _listening = await open();
    expect(await askForChange(control, ['any'])).toBe('done');
  });

  test('that a target listens at, and a file that is none, stay as they are', async () => {
    const first = await open();
    await expect(open()).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
    expect(await askForChange(control, ['any'])).toBe('done');
    await first[Symbol.asyncDispose]();
    writeFileSync(control, 'mine');
    await expect(open()).rejects.toMatchObject({ code: 'ERR_ROCE_IO' });
    expect(readFileSync(control, 'utf8')).toBe('mine');
  });
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

describe('secrets in a file', () => {
  const address = '127.0.2.23';
  const nqn = 'nqn.2026-11.rocev2:disk';
  const hostNqn = 'nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001';
  const secret = 'DHHC-1:00:ia6zGodOr4SEG0Zzaw398rpY0wqipUWj4jWjUh4HWUz6aQ2n:';
  const other = 'DHHC-1:00:MWPqcx1Ug1debg8fPIGpkqbQhLcYUt39k7UWirkblaKEH1kE:';
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const file = (text: string) => {
    const path = join(folder, 'keys');
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };

  test('let the host in that has them, in both directions, and no other', async () => {
    const disks = [new MemoryDevice(1 << 20)];
    await using server = await NvmeTargetServer.open({
      subsystems: [{ nqn, disks, hostSecrets: [{ hostNqn, secret, controllerSecret: other }] }],
      tcpAddresses: [address],
      port: 0,
    });
    const [{ port }] = server.ports;
    const list = (...options: string[]) => run(['nvme', 'list', address, '-p', `${port}`, '--nqn', nqn, ...options]);
    const right = file(`# of this host\n\n${hostNqn} ${secret} ${other} # both\n`);
    expect(await list('--host-nqn', hostNqn, '--dhchap-keys', right)).toMatchObject({ exitCode: 0, stderr: '' });
    // Discovery asks for no proof and has none to give; the subsystem that it leads to does both.
    const byDiscovery = ['list', address, '-p', `${port}`, '--host-nqn', hostNqn, '--dhchap-keys'];
    expect(await run(['nvme', ...byDiscovery, right])).toMatchObject({ exitCode: 0, stderr: '' });
    await using disk = await openNvme({ address, port, nqn, hostNqn, secret, controllerSecret: other });
    await disk.write(0, Buffer.alloc(512, 1));
    for (const [line, words] of [
      [`${hostNqn} ${other}`, 'the secrets differ'],
      [`${hostNqn} ${secret} ${secret}`, 'does not have the controller secret'],
    ]) {
      const { exitCode, stderr } = await list('--host-nqn', hostNqn, '--dhchap-keys', file(line));
      expect(stderr).toContain(words);
      expect(exitCode).toBe(3);
      expect((await run(['nvme', ...byDiscovery, join(folder, 'keys')])).stderr).toContain(words);
    }
    expect((await list('--host-nqn', hostNqn)).stderr).toContain('asks for authentication');
    expect((await list('--dhchap-keys', right)).stderr).toContain('give --host-nqn');
    await expect(openNvme({ address, port, nqn, controllerSecret: other })).rejects.toThrow(
      'also give the secret of the host',
    );
  });

  test.each([
    ['', 'has no secrets'],
    [`${hostNqn}`, 'line 1 of'],
    [`x ${secret}`, 'not an NVMe qualified name'],
    [`\n${hostNqn} DHHC-1:00:AAAA:`, 'line 2 of'],
    [`${hostNqn} ${secret}\n${hostNqn} ${other}`, 'again'],
  ])('%j is a mistake, which is named without the secret', async (text, words) => {
    const args = ['--disk', 'memory', '--size', '1MiB', '--bind', address, '--dhchap-keys', file(text)];
    const { exitCode, stderr } = await run(['nvme', 'target', ...args]);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('DHHC-1:00:');
    expect(exitCode).toBe(2);
  });
});

describe('keys of TLS', () => {
  const address = '127.0.2.32';
  const nqn = 'nqn.2026-11.rocev2:disk';
  const hostNqn = 'nqn.2014-08.org.nvmexpress:uuid:00000000-0000-4000-8000-000000000001';
  const key = 'NVMeTLSkey-1:01:VRLbtnN9AQb2WXW3c9+wEf/DRLz0QuLdbYvEhwtdWwNf9LrZ:';
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-nvme-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const file = (text: string) => {
    const path = join(folder, 'tls-keys');
    writeFileSync(path, text, { mode: 0o600 });
    return path;
  };

  test('let the host in that has one, and no other', async () => {
    await using server = await NvmeTargetServer.open({
      subsystems: [{ nqn, disks: [new MemoryDevice(1 << 20)] }],
      tcpAddresses: [address],
      port: 0,
      tlsKeys: [{ hostNqn, key }],
    });
    const [{ port }] = server.ports;
    const ask = (...words: string[]) => run(['nvme', ...words, '-p', `${port}`, '--host-nqn', hostNqn]);
    const keys = ['--tls-keys', file(`# ours\n${hostNqn} ${key}\n`)];
    expect(await ask('list', address, '--nqn', nqn, ...keys)).toMatchObject({ exitCode: 0, stderr: '' });
    expect((await ask('discover', address, ...keys)).stdout).toContain(nqn);
    const refused = await ask('list', address, '--nqn', nqn);
    expect(refused.exitCode).toBe(3);
    const overRdma = await ask('list', address, '--nqn', nqn, ...keys, '--transport', 'rdma');
    expect(overRdma.stderr).toContain('RDMA has no TLS');
    expect(overRdma.exitCode).toBe(2);
  });

  test.each([
    [`${hostNqn}`, 'tcp', 'is not HOSTNQN KEY'],
    [`${hostNqn} NVMeTLSkey-1:01:AAAA:`, 'tcp', 'line 1 of'],
    [`${hostNqn} ${key}`, 'rdma,tcp', 'RDMA has no TLS'],
  ])('%j with %s is a mistake, which is named without the key', async (text, transport, words) => {
    const args = ['--disk', 'memory', '--size', '1MiB', '--bind', address, '--tls-keys', file(text)];
    const { exitCode, stderr } = await run(['nvme', 'target', ...args, '--transport', transport]);
    expect(stderr).toContain(words);
    expect(stderr).not.toContain('NVMeTLSkey-1:01:');
    expect(exitCode).toBe(2);
  });
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

test('a change where no target listens has the exit code of that', async () => {
  expect(await run(['nvme', 'remove', '/tmp/rocev2-nowhere.sock', 'disk', '1'])).toMatchObject({
    exitCode: 3,
  });
});

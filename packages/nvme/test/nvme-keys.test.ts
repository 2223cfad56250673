import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MemoryDevice } from '../../../src/storage-rpc/disk/memory-device.js';
import { NbdDevice } from '../../../src/storage-rpc/nbd/nbd-device.js';
import { freePort } from '../../../test/support/free-port.js';
import { run } from '../../cli/test/run-in-process.js';
import { NvmeTlsKey } from '../src/auth/tls-key.js';
import { NvmeTargetServer } from '../src/live/nvme-target-server.js';
import { openNvme } from '../src/live/open-nvme.js';

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

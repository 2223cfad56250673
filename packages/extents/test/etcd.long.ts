/** A real etcd: as a store of metadata, and under three managers and four nodes as processes, of which the leading ones are killed while a stream is appended. */

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises'; // timer: times to live of etcd are seconds of the system
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { RoceError } from '../../../src/core/errors.js';
import { SYSTEM_CLOCK } from '../../../src/driver/system-clock.js';
import type { RdmaDevice } from '../../../src/verbs/device.js';
import { openDevice } from '../../../src/verbs/open-device.js';
import { metadataContract } from '../../../test/contracts/metadata-contract.js';
import { childrenOf, isAlive, isBuilt, Program } from '../../../test/e2e/executable.js';
import { hasOpenssl, makeCertificates, makeNameless } from '../../../test/support/certificates.js';
import { eventually } from '../../../test/support/eventually.js';
import { freePort } from '../../../test/support/free-port.js';
import { type EtcdAccess, type ExtentsClient, openExtents } from '../src/index.js';
import { EtcdGateway } from '../src/live/etcd-gateway.js';
import { EtcdMetadata } from '../src/live/etcd-metadata.js';
import { Appender, expectRecords } from './appender.js';
import { EtcdMembers, WHY_NO_ETCD } from './etcd-members.js';

const LIMIT_MS = 240_000;
const STAGE_LIMIT_MS = 60_000;
const MANAGERS = 3;
const NODES = 4;

if (WHY_NO_ETCD !== undefined) console.warn(`skipped: metadata in etcd: ${WHY_NO_ETCD}`);

describe.skipIf(WHY_NO_ETCD !== undefined)('one member', () => {
  let folder: string;
  let etcd: EtcdMembers;
  let prefixes = 0;
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-etcd-'));
    etcd = await EtcdMembers.start(folder, 1);
  });
  afterAll(async () => {
    await etcd.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const open = (endpoints: readonly string[] = etcd.endpoints) =>
    new EtcdMetadata(SYSTEM_CLOCK, { endpoints, prefix: `test${prefixes++}/` });

  // timer: a limit of what is shortest in etcd, two seconds.
  metadataContract(
    'metadata in etcd',
    async () => ({ metadata: open(), settled: (work) => work, pass: (ms) => pause(ms) }),
    2000,
  );

  it('goes on to the next member where the first is not there', async () => {
    const metadata = open([`http://127.0.0.1:${await freePort()}`, ...etcd.endpoints]);
    expect(await metadata.commit({ compare: [], put: [{ key: 'a', value: '1' }] })).toBeGreaterThan(0);
    expect((await metadata.get('a'))?.value).toBe('1');
    await metadata.close();
  });

  it('says where nobody answers', async () => {
    const metadata = open([`http://127.0.0.1:${await freePort()}`]);
    await expect(metadata.get('a')).rejects.toThrow(/etcd does not answer at http:\/\/127.0.0.1:\d+: .*ECONNREFUSED/);
    await metadata.close();
  });

  it('lists more keys than one answer has', async () => {
    const metadata = open();
    const keys = Array.from({ length: 1050 }, (_, k) => `many/${String(k).padStart(5, '0')}`);
    for (let k = 0; k < keys.length; k += 100)
      await metadata.commit({ compare: [], put: keys.slice(k, k + 100).map((key) => ({ key, value: key })) });
    expect((await metadata.list('many/')).map(({ key }) => key)).toEqual(keys);
    await metadata.close();
  });
});

describe.skipIf(WHY_NO_ETCD !== undefined || !hasOpenssl())('a member that wants certificates, and a user', () => {
  let folder: string;
  let etcd: EtcdMembers;
  const pem = (name: string, of = 'certificates') => readFileSync(join(folder, of, `${name}.pem`), 'utf8');
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-etcd-tls-'));
    makeCertificates(join(folder, 'certificates'), 'serverAuth,clientAuth'); // etcd's gateway is a client of its member.
    makeNameless(join(folder, 'certificates'));
    makeCertificates(join(folder, 'others'));
    etcd = await EtcdMembers.startSecure(folder, join(folder, 'certificates'));
    const metadata = open(credentials());
    await eventually(() => metadata.get('a').then(() => true, () => false), { limitMs: 60_000, everyMs: 50 }); // biome-ignore format: one thought
    await metadata.close();
  });
  afterAll(async () => {
    await etcd.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const credentials = () => ({ ca: pem('ca-cert'), cert: pem('client-cert'), key: pem('client-key') });
  const open = (access: EtcdAccess, endpoints: readonly string[] = etcd.endpoints) =>
    new EtcdMetadata(SYSTEM_CLOCK, { endpoints, access });
  const problem = async (access: EtcdAccess, endpoints?: readonly string[]) => {
    const metadata = open(access, endpoints);
    const found = await metadata.get('a').then(
      () => 'none',
      (error: RoceError) => `${error.message} ${error.hint}`,
    );
    await metadata.close();
    return found;
  };

  it('keeps what it is given, and says what has changed', async () => {
    const metadata = open(credentials());
    const changed: string[] = [];
    const stop = metadata.watch('k', (key) => changed.push(key));
    await eventually(async () => {
      expect(await metadata.commit({ compare: [], put: [{ key: 'k', value: 'v' }] })).toBeGreaterThan(0);
      return changed.includes('k');
    });
    expect((await metadata.get('k'))?.value).toBe('v');
    stop();
    await metadata.close();
  });

  it('says which file to name where certificates are missing, or those of others', async () => {
    expect(await problem({})).toMatch(/\?ca=FILE/);
    expect(await problem({ ...credentials(), ca: pem('ca-cert', 'others') })).toMatch(/not signed by .*\?ca=FILE/);
    expect(await problem({ ca: pem('ca-cert') })).toMatch(/requires client certificates.*cert=FILE&key=FILE/);
    const other = { cert: pem('client-cert', 'others'), key: pem('client-key', 'others') };
    expect(await problem({ ...credentials(), ...other })).toMatch(/requires client certificates/);
    expect(await problem({}, [etcd.endpoints[0].replace('https', 'http')])).toMatch(/write 'etcd:https:/);
  });

  it.runIf(isBuilt)('is refused by the command in the same words', async () => {
    const file = (name: string) => join(folder, 'certificates', `${name}.pem`);
    const run = async (query: string) => {
      const program = Program.rocev2(
        'extents',
        'manager',
        '-p',
        '0',
        '--metadata',
        `etcd:${etcd.endpoints[0]}${query}`,
      );
      try {
        return await program.writes('stderr', /listening on|\?ca=FILE|requires client certificates/);
      } finally {
        program.kill('SIGKILL');
        await program.ended();
      }
    };
    const all = `?ca=${file('ca-cert')}&cert=${file('client-cert')}&key=${file('client-key')}`;
    expect((await run(all))[0]).toBe('listening on');
    expect((await run(''))[0]).toBe('?ca=FILE');
    expect((await run(`?ca=${file('ca-cert')}`))[0]).toBe('requires client certificates');
  });

  /** The last one: from here on there are users. */
  it('knows users by their passwords', async () => {
    expect(await problem({ ...credentials(), user: 'root', password: 'x' })).toMatch(/it has no users/);
    const root = { name: 'root', password: 'secret' };
    const gateway = new EtcdGateway(etcd.endpoints, SYSTEM_CLOCK, 5000, credentials());
    await gateway.ask('/v3/auth/role/add', { name: 'root' });
    await gateway.ask('/v3/auth/user/add', root);
    await gateway.ask('/v3/auth/user/grant', { user: 'root', role: 'root' });
    await gateway.ask('/v3/auth/enable', {});
    gateway.close();
    expect(await problem({ ...credentials(), user: 'root', password: 'secret' })).toMatch(/subject has no CN/);
    const nameless = { ca: pem('ca-cert'), cert: pem('nameless-cert'), key: pem('nameless-key') };
    expect(await problem({ ...nameless, user: 'root', password: 'secret' })).toBe('none');
    expect(await problem({ ...nameless, user: 'root', password: 'wrong' })).toMatch(/file with its password/);
    expect(await problem(nameless)).toMatch(/user=NAME&password=FILE/);
  });
});

describe.skipIf(WHY_NO_ETCD !== undefined || !isBuilt)('one command with three managers', () => {
  let folder: string;
  let etcd: EtcdMembers;
  let up: Program;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'rocev2-up-'));
    etcd = await EtcdMembers.start(join(folder, 'etcd'), 1);
    const of = ['--nodes', '3', '-p', '0', '--extent-size', '1MiB', '--managers', '3'];
    up = Program.rocev2('extents', 'up', '--dir', join(folder, 'c'), ...of, '--metadata', `etcd:${etcd.endpoints[0]}`);
  });
  afterAll(async () => {
    up.kill('SIGKILL');
    await up.ended();
    await etcd.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it(
    'has a disk that goes on when the leading manager is killed, and ends all processes by Ctrl-C',
    async () => {
      await up.writes('stderr', /Ctrl-C ends it/);
      // The line that serves a disk names all managers.
      const [, manager] = await up.writes('stdout', /disk nbd --backend stream:vol@(\S+) --listen/);
      const managers = [...up.stderr.matchAll(/^manager \d is at (\S+), process (\d+)$/gm)];
      expect(managers.map(([, address]) => address).join()).toBe(manager);
      const children = childrenOf(up.process.pid!);
      await using device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
      await using client = await openExtents({ device, manager });
      await client.createDisk('vol', { sizeBytes: 8 << 20 });
      await using disk = await client.openDisk('vol');
      const data = (k: number) => Buffer.alloc(256 << 10, k + 1);
      const write = async (from: number, to: number) => {
        for (let k = from; k < to; k++) await disk.write(k * data(k).length, data(k));
      };
      await write(0, 6);
      const leader = (await client.status()).managers.find(({ leads }) => leads)!.address;
      process.kill(Number(managers.find(([, address]) => address === leader)![2]), 'SIGKILL');
      await write(6, 18); // More than one extent has: somebody has to open another one.
      expect((await client.status()).managers.find(({ leads }) => leads)!.address).not.toBe(leader);
      for (let k = 0; k < 18; k++) {
        const read = Buffer.alloc(data(k).length);
        await disk.read(k * read.length, read.length, read);
        expect(read.equals(data(k)), `piece ${k}`).toBe(true);
      }
      up.kill('SIGINT');
      expect(await up.ended(), up.stderr).toBe(0);
      expect(children.filter(isAlive)).toEqual([]);
    },
    LIMIT_MS,
  );
});

describe.skipIf(WHY_NO_ETCD !== undefined || !isBuilt)('three managers over three members', () => {
  let folder: string;
  let etcd: EtcdMembers;
  let device: RdmaDevice;
  let client: ExtentsClient;
  const programs: Program[] = [];

  afterEach(async () => {
    await client?.close();
    await device?.close();
    for (const program of programs) program.kill('SIGKILL');
    await Promise.all(programs.map((program) => program.ended()));
    await etcd?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  function started(...args: string[]): Program {
    const program = Program.rocev2('extents', ...args);
    programs.push(program);
    return program;
  }

  it(
    'lose no acknowledged record when the leading manager is killed, and the leader of etcd',
    async () => {
      folder = mkdtempSync(join(tmpdir(), 'rocev2-managers-'));
      etcd = await EtcdMembers.start(join(folder, 'etcd'), 3);
      const store = `etcd:${etcd.endpoints.join()}`;
      const managers = Array.from({ length: MANAGERS }, () =>
        started('manager', '--metadata', store, '-p', '0', '--extent-size', '1MiB'),
      );
      const addresses = await Promise.all(
        managers.map(async (program) => (await program.writes('stderr', /listening on (\S+)/))[1]),
      );
      const join_ = addresses.join();
      const nodes = Array.from({ length: NODES }, (_, k) =>
        started('node', '--dir', join(folder, `node${k}`), '--join', join_),
      );
      await Promise.all(nodes.map((node) => node.writes('stderr', /Ctrl-C ends it/)));
      device = await openDevice({ address: '127.0.0.1', udpPort: 0 });
      client = await openExtents({ device, manager: join_ });
      await client.createStream('log');
      const writer = await client.openStream('log');
      const appender = new Appender(writer, (number) => Buffer.alloc(100_000 + number, number & 0xff));
      const more = (count: number) => appender.more(count, STAGE_LIMIT_MS);
      const leading = async () => (await client.status()).managers.find(({ leads }) => leads)!.address;

      // Each time an extent is full, so that a manager has to open another one.
      await more(15);
      const first = await leading();
      managers[addresses.indexOf(first)].kill('SIGKILL');
      await more(15);
      const second = await leading();
      expect(second).not.toBe(first);
      await etcd.kill((await etcd.leader())!);
      await more(15);
      nodes[writer.extent!.replicas[0].node - 1].kill('SIGKILL'); // Numbers may be those of other folders: any one will do.
      await more(15);
      await appender.end();

      await expectRecords(client, 'log', appender.acknowledged);
      const status = await client.status();
      expect(status.managers.map(({ leads }) => leads)).toEqual([true, false]);
      expect(status.nodes.length).toBe(NODES);
    },
    LIMIT_MS,
  );
});

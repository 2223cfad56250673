import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { access, open } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freeUdpPort } from '../support/free-port.js';
import { describeOnRig } from './support/describe-on-rig.js';
import { Rig, RigFailure } from './support/rig.js';

const PINGPONG_PORT = 18515;
const RPING_PORT = 7174;
const ETHERTYPE_ARP = 0x0806;

await describeOnRig('two guests on a bridge', 'bridge', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await Rig.start({ guests: 2 });
    console.log(`two guests ready after ${Math.round(rig.bootMs)} ms`);
  });
  afterAll(() => rig?.stop());

  test('each guest has an active rxe0', async () => {
    for (const { number } of rig.guests) {
      const { stdout, exitCode } = await rig.exec('ibv_devinfo -d rxe0', { guest: number });
      expect(exitCode).toBe(0);
      expect(stdout).toMatch(/state:\s+PORT_ACTIVE/);
      expect(stdout).toMatch(/active_mtu:\s+1024/);
    }
  });

  test('the versions are those the guests run', async () => {
    const versions = await Rig.versions();
    console.log(versions);
    expect((await rig.exec('uname -r')).stdout.trim()).toBe(versions.kernel);
    expect((await rig.exec('uname -v')).stdout).toContain(versions.kernelPackage);
    expect((await rig.exec('ib_send_bw --version')).stdout).toMatch(/^Version: \d/);
    expect(versions.rdmaCore).toMatch(/^\d+\./);
    expect(versions.perftest).toMatch(/^\d+\./);
  });

  test('ibv_rc_pingpong runs between them, seen by a capture', async () => {
    const [, second] = rig.guests;
    const capture = await rig.capture();
    const server = await rig.background('server', 'ibv_rc_pingpong -g 1 -n 100 -c', { guest: 2 });
    await rig.listening(PINGPONG_PORT, { guest: 2 });
    const before = await rig.counters();
    const client = await rig.exec(`ibv_rc_pingpong -g 1 -n 100 -c ${second?.ip4}`);
    expect(client).toMatchObject({ exitCode: 0, stdout: expect.stringContaining('100 iters') });
    expect(await server.wait()).toMatchObject({ exitCode: 0 });
    // 4096 bytes at a path MTU of 1024: four packets of more than 1024 bytes a message, 100 messages each way.
    expect((await rig.counters()).rcvd_pkts).toBeGreaterThanOrEqual(before.rcvd_pkts + 100 * 4);
    const file = await open(await capture.stop());
    expect((await file.stat()).size).toBeGreaterThan(100 * 2 * 4 * 1024);
    await file.close();
  });

  test('rping connects through rdma_cm over IPv6', async () => {
    const [, second] = rig.guests;
    const server = await rig.background('server', `rping -s -C 2 -a ${second?.ip6}`, { guest: 2 });
    await rig.listening(RPING_PORT, { guest: 2 });
    expect(await rig.exec(`rping -c -v -C 2 -a ${second?.ip6}`)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining('rdma-ping-1'),
    });
    expect(await server.wait()).toMatchObject({ exitCode: 0 });
  });

  test('waiting for a listener that never comes ends', async () => {
    await expect(rig.listening(1, { timeoutMs: 200 })).rejects.toThrow(/nobody listened on port 1 /);
  });

  test('loss on the bridge is repaired by rxe and counted', async () => {
    const [, second] = rig.guests;
    // Five messages of six packets. A smaller number than a message and a half can strike the same packet in every rewind.
    const loss = await rig.loss({ every: 19, direction: 'to2' });
    const server = await rig.background('server', 'rigverbs -4 -l 9000 recv:5 sync', { guest: 2 });
    await rig.listening(9000, { guest: 2 });
    const client = await rig.exec(`rigverbs -4 -t 15 -c ${second?.ip4}:9000 fill:1 'send:6000*5' drain sync`);
    expect(client).toMatchObject({ exitCode: 0 });
    expect((await server.wait()).stdout.match(/len=6000 /g)).toHaveLength(5);
    expect(await loss.stop()).toBeGreaterThan(0);
  });

  test('a command takes milliseconds, and reports its streams and exit code', async () => {
    const started = performance.now();
    expect(await rig.exec('echo out; echo err >&2; exit 9')).toEqual({ exitCode: 9, stdout: 'out\n', stderr: 'err\n' });
    console.log(`exec took ${Math.round(performance.now() - started)} ms`);
  });

  test('a command that runs too long ends with 124', async () => {
    // timer: a command that is to be ended
    expect((await rig.exec('sleep 60', { timeoutMs: 300 })).exitCode).toBe(124);
  });

  test('a killed job ends with everything it started', async () => {
    const sleeper = 'sleep 1234'; // timer: a command that is to be ended
    const job = await rig.background('sleeper', `echo begun; ${sleeper}; true`);
    await job.kill();
    expect(await job.wait()).toMatchObject({ exitCode: 143, stdout: 'begun\n' });
    expect((await rig.exec('ps')).stdout).not.toContain(sleeper);
  });

  test('a host process sees the namespace, and a guest reaches it', async () => {
    const { ip4 } = rig.hostSide;
    const program = `require('node:net').createServer((socket) => socket.on('data', (data) => {
      console.log('got ' + data);
      process.exit(3);
    })).listen(9999, '${ip4}', () => console.log('bound'))`;
    const listener = rig.host([process.execPath, '-e', program]);
    await listener.waitForOutput(/bound/);
    await rig.exec(`echo hello | nc -w 2 ${ip4} 9999`);
    expect(await listener.wait()).toMatchObject({ exitCode: 3, stdout: expect.stringContaining('got hello') });
  });

  test('a file put into a guest arrives whole', async () => {
    const file = process.argv[1] as string;
    const local = await rig.host(['sha256sum', file]).wait();
    await rig.put(file, '/tmp/copy', { guest: 2 });
    const { stdout } = await rig.exec('sha256sum /tmp/copy', { guest: 2 });
    expect(stdout.split(' ')[0]).toBe(local.stdout.split(' ')[0]);
  });
});

await describeOnRig('the life of a rig', 'bridge', () => {
  test('two rigs run side by side and leave nothing behind', async () => {
    const rigs = await Promise.all([Rig.start(), Rig.start()]);
    try {
      const names = await Promise.all(
        rigs.map(async (rig) => (await rig.exec('cat /sys/class/net/eth0/address')).stdout),
      );
      expect(names[0]).toBe(names[1]); // the same addresses, each in a namespace of its own
      expect(rigs[0].namespace).not.toBe(rigs[1].namespace);
    } finally {
      const leftover = rigs[0].host(['sleep', '1000']);
      await Promise.all(rigs.map((rig) => rig.stop()));
      expect((await leftover.wait()).exitCode).toBe(128 + 15);
    }
    for (const rig of rigs) {
      await expect(access(rig.directory)).rejects.toThrow('ENOENT');
      await expect(access(`/var/run/netns/${rig.namespace}`)).rejects.toThrow('ENOENT');
      await expect(rig.exec('true')).rejects.toThrow(RigFailure);
      await rig.stop();
    }
  });

  test('a rig that cannot start says why', async () => {
    await expect(Rig.start({ mtu: 10 })).rejects.toThrow(RigFailure);
  });
});

await describeOnRig('a guest on a UDP socket', 'dgram', () => {
  test('its Ethernet frames arrive one a datagram, and answers reach it', async () => {
    const wire = createSocket('udp4').bind(0, '127.0.0.1');
    await once(wire, 'listening');
    const localPort = await freeUdpPort();
    await using rig = await Rig.start({
      dgram: [{ localPort, remotePort: wire.address().port, ip4: '192.0.2.5/24', ip6: 'fd99::5/64' }],
    });
    expect(rig.guests[0]).toMatchObject({ ip4: '192.0.2.5', ip6: 'fd99::5' });

    const neighbour = Buffer.from('020000000009', 'hex');
    wire.on('message', (frame) => {
      if (frame.readUInt16BE(12) !== ETHERTYPE_ARP) return;
      const answer = Buffer.from(frame); // swap the parties, and fill in who has the address
      frame.copy(answer, 0, 6, 12);
      neighbour.copy(answer, 6);
      answer.writeUInt16BE(2, 20);
      neighbour.copy(answer, 22);
      frame.copy(answer, 28, 38, 42);
      frame.copy(answer, 32, 22, 32);
      wire.send(answer, localPort, '127.0.0.1');
    });
    await rig.exec('ping -c 1 -W 1 192.0.2.9');
    wire.close();
    expect((await rig.exec('ip neigh show 192.0.2.9')).stdout).toContain('lladdr 02:00:00:00:00:09');
  });
});

describe('the check', () => {
  test('prints `ready` or one line with the reason', async () => {
    const reason = await Rig.refusal();
    if (reason !== undefined) expect(reason).toMatch(/^[^\n]+$/);
  });
});

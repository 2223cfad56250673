/**
 * UC and UD against Linux Soft-RoCE: `rocev2 bw|lat --perftest --transport` against perftest's `-c UC` and `-c UD`, `rocev2 pingpong --transport`
 * against ibv_uc_pingpong and ibv_ud_pingpong, UC one verb at a time against rigverbs; loss, and peers of another transport.
 */

import { expect } from 'vitest';
import { cell } from './support/cell.js';
import { describeWithRig } from './support/describe-on-rig.js';
import { saysOnStderr, startRocev2 } from './support/rocev2.js';
import { fillSum, runVerbs } from './support/verbs-pair.js';

const PORT = 18515;
const ITERATIONS = 50;
/** A tool whose peer has left may wait for ever; it is ended then. */
const STUCK_SECONDS = 15;
const FAMILIES = [
  { family: 4, gidIndex: 1, mtu: 4096 },
  { family: 6, gidIndex: 2, mtu: 1024 },
] as const;
type Family = (typeof FAMILIES)[number];

/** What moves: UC in several packets, UD in one. Bursts stay below what the emulated guest can hold, because nobody sends them again. */
const TESTS = [
  { transport: 'uc', op: 'write', kind: 'bw', size: 5_000 },
  { transport: 'uc', op: 'write', kind: 'lat', size: 5_000 },
  { transport: 'uc', op: 'send', kind: 'bw', size: 5_000 },
  { transport: 'uc', op: 'send', kind: 'lat', size: 5_000 },
  { transport: 'ud', op: 'send', kind: 'bw', size: 1_000 },
  { transport: 'ud', op: 'send', kind: 'lat', size: 1_000 },
] as const;
type Test = (typeof TESTS)[number];

await describeWithRig('UC and UD between us and Soft-RoCE', { mtu: 4200 }, (rig) => {
  const addressOf = (family: 4 | 6) => (family === 4 ? rig().hostSide.ip4 : rig().hostSide.ip6);
  const flag = (transport: string) => `-c ${transport.toUpperCase()}`;

  const numbersOf = (test: Pick<Test, 'size'>, where: Family) => [
    '-s',
    `${test.size}`,
    '-n',
    `${ITERATIONS}`,
    '-m',
    `${where.mtu}`,
  ];
  const stock = (test: Test, where: Family, connection = flag(test.transport)) =>
    `ib_${test.op}_${test.kind} ${connection} -x ${where.gidIndex} ${numbersOf(test, where).join(' ')}`;
  const ours = (test: Test, where: Family, host: readonly string[], ...more: string[]) => {
    const own = ['--transport', test.transport, '--bind', addressOf(where.family), '--perftest', '--json', ...more];
    return startRocev2(rig(), [test.kind, test.op, ...host, ...numbersOf(test, where), ...own]);
  };

  /** Theirs runs in the background, ours is the client; both outcomes. */
  async function asClient(tool: string, start: () => ReturnType<typeof startRocev2>) {
    const server = await rig().background('server', tool);
    try {
      await rig().listening(PORT);
      const us = await start().wait();
      // A result that nobody can verify is the end of the test for both.
      const isAtEnd = us.exitCode === 0 || us.stderr.includes('unverified:');
      return { us, them: isAtEnd ? await server.wait() : undefined };
    } finally {
      await server.kill();
    }
  }

  async function asServer(tool: string, start: () => ReturnType<typeof startRocev2>, limitSeconds = 30) {
    const server = start();
    try {
      await saysOnStderr(server, 'waiting for');
      const them = await rig().exec(`timeout ${limitSeconds} ${tool} ${rig().hostSide.ip4}`);
      return { us: await server.wait(), them };
    } finally {
      await server.stop();
    }
  }

  for (const where of FAMILIES) {
    for (const test of TESTS) {
      const { transport, op, kind, size } = test;
      const facts = { tool: `ib_${op}_${kind} ${flag(transport)}`, family: where.family, mtu: where.mtu };
      const expected = { op, transport, sizeBytes: size, iterations: ITERATIONS, mtu: where.mtu };
      const group = `perftest over ${transport}`;
      const asClientOfTheirs = async () => {
        const { us, them } = await asClient(stock(test, where), () => ours(test, where, [rig().guests[0].ip4]));
        // What a WRITE without acknowledgement came to, nobody says.
        const isUnverified = op === 'write' && kind === 'bw';
        expect([us.exitCode, them?.exitCode], us.stderr + them?.stderr).toEqual([isUnverified ? 1 : 0, 0]);
        expect(us.stderr.includes('unverified:')).toBe(isUnverified);
        // Of a bandwidth test only its receiver knows what arrived; a server of SEND ends when it has all.
        expect(JSON.parse(us.stdout)).toMatchObject({ ...expected, lost: kind === 'bw' ? null : 0 });
        if (op === 'send') expect(them?.stdout).toMatch(new RegExp(`${size} +${ITERATIONS} `));
      };
      cell({ ...facts, role: 'client' }, asClientOfTheirs, { group });
      const asTheirServer = async () => {
        const { us, them } = await asServer(stock(test, where), () => ours(test, where, []));
        expect([us.exitCode, them.exitCode], us.stderr + them.stderr).toEqual([0, 0]);
        expect(JSON.parse(us.stdout)).toMatchObject({ ...expected, lost: 0 });
      };
      cell({ ...facts, role: 'server' }, asTheirServer, { group });
    }

    for (const { transport, size } of [
      { transport: 'uc', size: 5_000 },
      { transport: 'ud', size: 1_000 },
    ]) {
      const tool = `ibv_${transport}_pingpong`;
      const numbers = `-s ${size} -n ${ITERATIONS}`;
      // ibv_ud_pingpong has no -m.
      const peer = `${tool} -g ${where.gidIndex} -c ${numbers} ${transport === 'uc' ? `-m ${where.mtu}` : ''}`;
      const start = (...host: string[]) => {
        const own = ['--transport', transport, '-m', `${where.mtu}`, '--bind', addressOf(where.family), '-c', '--json'];
        return startRocev2(rig(), ['pingpong', ...host, ...numbers.split(' '), ...own]);
      };
      const verified = { transport, iterations: ITERATIONS, sizeBytes: size, verified: true };
      const facts = { tool, family: where.family, mtu: where.mtu, what: `${size} bytes` };
      cell({ ...facts, role: 'client' }, async () => {
        const { us, them } = await asClient(peer, () => start(rig().guests[0].ip4));
        expect([us.exitCode, them?.exitCode], us.stderr + them?.stderr).toEqual([0, 0]);
        expect(JSON.parse(us.stdout)).toMatchObject(verified);
      });
      cell({ ...facts, role: 'server' }, async () => {
        const { us, them } = await asServer(peer, () => start());
        expect([us.exitCode, them.exitCode], us.stderr + them.stderr).toEqual([0, 0]);
        expect(JSON.parse(us.stdout)).toMatchObject(verified);
      });
    }
  }

  const [IP4] = FAMILIES;
  const [UC_WRITE_BW, , UC_SEND_BW, , UD_SEND_BW, UD_SEND_LAT] = TESTS;

  for (const test of [UC_SEND_BW, UC_WRITE_BW, UD_SEND_BW]) {
    const what = 'every 11th packet lost on the way to us: the server counts';
    const run = async () => {
      const loss = await rig().loss({ every: 11, direction: 'from1' });
      let dropped = 0;
      try {
        const { us, them } = await asServer(stock(test, IP4), () => ours(test, IP4, []));
        expect([us.exitCode, them.exitCode], us.stderr + them.stderr).toEqual([0, 0]);
        dropped = await loss.stop();
        // Two packets a message over UC, and no two of those that are lost belong to one message.
        expect(dropped).toBe(Math.floor((ITERATIONS * (test.transport === 'uc' ? 2 : 1)) / 11));
        expect(JSON.parse(us.stdout)).toMatchObject({ iterations: ITERATIONS - dropped, lost: dropped });
      } finally {
        if (dropped === 0) await loss.stop();
      }
    };
    const tool = `ib_${test.op}_bw ${flag(test.transport)}`;
    cell({ tool, role: 'server', family: 4, mtu: 4096, what }, run, { group: what });
  }

  for (const test of [UC_SEND_BW, UD_SEND_BW]) {
    const what = 'every 11th packet lost on the way to it: it waits on, and we end';
    const run = async () => {
      const { us } = await asClient(stock(test, IP4), () =>
        ours(test, IP4, [rig().guests[0].ip4], '--loss', 'host>wire:every=11'),
      );
      expect(us.exitCode).toBe(1);
      expect(us.stderr).toContain('the server did not confirm all messages');
      expect(JSON.parse(us.stdout)).toMatchObject({ iterations: ITERATIONS, lost: null, verified: false });
    };
    const tool = `ib_${test.op}_bw ${flag(test.transport)}`;
    cell({ tool, role: 'client', family: 4, mtu: 4096, what }, run, { group: what });
  }

  const whatLat = 'one message lost: it waits for ever, and we end';
  cell({ tool: `ib_send_lat ${flag('ud')}`, role: 'client', family: 4, mtu: 4096, what: whatLat }, async () => {
    const { us } = await asClient(stock(UD_SEND_LAT, IP4), () =>
      ours(UD_SEND_LAT, IP4, [rig().guests[0].ip4], '--loss', 'host>wire:every=11'),
    );
    expect(us.exitCode).toBe(1);
    expect(us.stderr).toContain("a message was lost, and 'ib_send_lat -c UD' waits for it forever");
    expect(JSON.parse(us.stdout)).toMatchObject({ iterations: 10, lost: 1 });
  });

  const foreign = [
    { test: { ...UC_WRITE_BW, transport: 'rc' }, connection: '-c UC', sends: 'UC' },
    { test: { ...UC_SEND_BW, transport: 'rc' }, connection: '-c UD', sends: 'UC or UD', size: 1_000 },
    { test: UC_WRITE_BW, connection: '-c RC', sends: 'RC' },
    { test: UD_SEND_BW, connection: '-c UC', sends: 'RC or UC' },
  ];
  for (const { test, connection, sends, size = test.size } of foreign) {
    const run = { ...test, size } as Test;
    const what = `meets our ${test.transport.toUpperCase()} server: named at once`;
    const named = async () => {
      const { us } = await asServer(stock(run, IP4, connection), () => ours(run, IP4, []), STUCK_SECONDS);
      expect(us.exitCode).toBe(1);
      expect(us.stderr).toContain(`the peer sends ${sends} packets, and this side has ${test.transport.toUpperCase()}`);
    };
    const tool = `ib_${test.op}_bw ${connection}`;
    cell({ tool, role: 'server', family: 4, mtu: 4096, what }, named, { group: 'perftest of another transport' });
  }

  const whatSilent = 'meets our RC client: nothing is answered, and why is said';
  cell({ tool: 'ib_write_bw -c UC', role: 'client', family: 4, mtu: 4096, what: whatSilent }, async () => {
    const rc = { ...UC_WRITE_BW, transport: 'rc' } as unknown as Test;
    const { us } = await asClient(stock(rc, IP4, '-c UC'), () => ours(rc, IP4, [rig().guests[0].ip4]));
    expect(us.exitCode).toBe(1);
    expect(us.stderr).toContain('was it started with -c UC or UD?');
  });

  const whatSizes = 'all sizes (-a): the first one that is not ours ends the run';
  cell({ tool: 'ib_send_bw -a', role: 'server', family: 4, mtu: 4096, what: whatSizes }, async () => {
    const own = ['-s', '8MiB', '-n', '5', '--bind', rig().hostSide.ip4, '--perftest', '--json'];
    const start = () => startRocev2(rig(), ['bw', 'send', ...own]);
    const { us } = await asServer('ib_send_bw -x 1 -a -n 5', start, STUCK_SECONDS);
    expect(us.exitCode).toBe(1);
    expect(us.stderr).toContain('received a message of 2 bytes; expected 8388608');
  });

  for (const { tool, says } of [
    { tool: 'ibv_uc_pingpong', says: 'the peer sends UC or UD packets, and this side has RC' },
    { tool: 'ibv_ud_pingpong', says: 'the peer sends UC or UD packets, and this side has RC' },
    { tool: 'ibv_srq_pingpong', says: 'the peer is ibv_srq_pingpong' },
  ]) {
    const what = 'meets our RC pingpong: named at once';
    const named = async () => {
      const server = startRocev2(rig(), ['pingpong', '-n', '10', '--bind', rig().hostSide.ip4]);
      await saysOnStderr(server, 'waiting for');
      const peer = await rig().background('peer', `${tool} -g 1 -n 10 ${rig().hostSide.ip4}`);
      const us = await server.wait();
      await peer.kill();
      expect(us.exitCode).toBe(1);
      expect(us.stderr).toContain(says);
    };
    cell({ tool, role: 'server', family: 4, mtu: 1024, what }, named, { group: what });
  }

  for (const role of ['client', 'server'] as const) {
    for (const { family, mtu } of FAMILIES) {
      const facts = { tool: 'rigverbs', role, family, mtu };
      cell({ ...facts, what: 'UC SEND, WRITE, both with immediate' }, async () => {
        const sizes = [0, 1, 3, 1024, 4093, 4096, 20_000];
        const sends = sizes.map((size) => `send:${size}`).join(' ');
        const {
          responder,
          ours: us,
          theirs,
        } = await runVerbs(rig(), {
          role,
          family,
          options: `-q uc -m ${mtu}`,
          requester: { operations: `fill:3 ${sends} sendimm:10:0xcafe write:30000 writeimm:0:0xbeef sync` },
          responder: { operations: `recv:${sizes.length + 2} sum:30000 sync` },
        });
        expect([theirs.exitCode, us.exitCode], theirs.text + us.text).toEqual([0, 0]);
        expect(responder.receives.map(({ len }) => Number(len))).toEqual([...sizes, 10, 0]);
        expect(responder.receives.slice(0, -1).map(({ fnv }) => fnv)).toEqual(
          [...sizes, 10].map((size) => fillSum(size, 3)),
        );
        expect(responder.receives.slice(-2).map(({ imm }) => imm)).toEqual(['0000cafe', '0000beef']);
        expect(responder.sums).toEqual([fillSum(30_000, 3)]);
      });
    }

    cell(
      { tool: 'rigverbs', role, family: 4, mtu: 1024, what: 'UC messages with a hole are dropped whole' },
      async () => {
        // Messages of 3, 5 and 2 packets, and one of each: the 2nd, the 4th (FIRST) and the 10th (LAST) packet never arrive.
        const way = role === 'client' ? 'host>wire' : 'wire>host';
        const faults = ['0x123457', '0x123459', '0x12345f'].map((psn) => `${way}:psn=${psn}`).join(';');
        const {
          requester,
          responder,
          ours: us,
          theirs,
        } = await runVerbs(rig(), {
          role,
          family: 4,
          options: '-q uc -m 1024 -p 0x123456',
          faults,
          requester: { operations: 'fill:5 send:3000 send:5000 send:2000 send:700 sendimm:2500:0xfeed sync' },
          responder: { operations: 'recv:2 sync' },
        });
        expect([theirs.exitCode, us.exitCode], theirs.text + us.text).toEqual([0, 0]);
        expect(requester.sends.map(({ status }) => status)).toEqual([0, 0, 0, 0, 0]);
        expect(responder.receives.map(({ len }) => Number(len))).toEqual([700, 2500]);
        expect(responder.receives.map(({ fnv }) => fnv)).toEqual([700, 2500].map((size) => fillSum(size, 5)));
        // The second message begins behind the hole in the first: nobody can tell that it is another.
        if (role === 'server') expect(us.counters['uc_messages_dropped']).toBe(2);
      },
    );
  }
});

// @ts-check
/** What a stranger does to a live connection, by datagrams that claim to be its peer's. */

import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { CaptureReader } from '../../../build/src/port/capture/capture-reader.js';
import { udpOf } from '../../../build/src/port/capture/udp-in-capture.js';
import { LocalForger, RawForger } from '../forger.js';

/** @typedef {import('../attacks.js').Attack} Attack @typedef {import('../attacks.js').Facts} Facts @typedef {import('../attacks.js').Outcome} Outcome */

const PSNS = 2 ** 24;
const FORGED = Buffer.from('FORGED'.padEnd(64));
/** Where no honest peer writes. */
export const TARGET_OFFSET = 512 * 1024;
export const DCQCN = { name: 'dcqcn', linkRateBps: 40e9 };

/** As the client, towards the server. @param {Facts} facts */
const asClient = ({ client, server, udpPort }) => LocalForger.open({ from: client, to: server, udpPort });
/** As the client, from the source port of its connection; undefined without the right to. @param {Facts} facts */
const asClientExactly = ({ client, server, udpPort, clientQp }) =>
  RawForger.open({ from: client, to: server, udpPort, sourcePort: clientQp.sourcePort });
/** As the server, towards the client. @param {Facts} facts */
const asServer = ({ client, server }) => LocalForger.open({ from: server, to: client, udpPort: 4791 });

const percent = (/** @type {number} */ ratio) => `${Math.round(100 * ratio)} %`;
const served = (/** @type {{ goodputRatio: number }} */ { goodputRatio }) =>
  `goodput ${percent(goodputRatio)} of before`;

/**
 * Sends so many a second until told to stop.
 * @param {number} perSecond @param {Facts} facts @param {LocalForger | RawForger} forger @param {(turn: number) => Promise<void>} send
 */
async function atPace(perSecond, { going }, forger, send) {
  const start = performance.now();
  while (going()) {
    const due = ((performance.now() - start) * perSecond) / 1000;
    while (going() && forger.sent < due) await send(forger.sent);
    await delay(2);
  }
  forger.close();
}

/** @param {Facts} facts @param {LocalForger | RawForger | undefined} forger @param {(turn: number) => object} fields @param {number} turns */
async function scan({ going }, forger, fields, turns) {
  if (forger === undefined) return { skipped: 'needs a raw socket: root and koffi' };
  let turn = 0;
  const start = performance.now();
  for (; going() && turn < turns; turn++) await forger.send(fields(turn), FORGED);
  const seconds = (performance.now() - start) / 1000;
  while (going()) await delay(20);
  forger.close();
  return { sent: turn, perSecond: turn / seconds };
}

/** @param {Outcome} outcome */
const forgedMessages = ({ seen, state, after, ...rest }) => ({
  text:
    seen.skipped ??
    `${seen.sent} packets at ${Math.round(seen.perSecond)}/s, ${state.forged} forged messages before the program; ${served(rest)}${after.work.failure ? `; ${after.work.failure}` : ''}`,
  won: state.forged > 0 || after.work.failure !== undefined,
});

/** @param {number} perSecond @param {boolean} exact @returns {Attack} */
const cnps = (perSecond, exact) => ({
  name: `cnp-${perSecond}${exact ? '-port' : ''}`,
  title: `${perSecond} CNPs a second for a connection with DCQCN${exact ? ', from the right port' : ''}`,
  from: exact ? 'off path, knows QPN and port' : 'local user who knows the QPN',
  rateControl: DCQCN,
  async run(facts) {
    const { server, client, clientQp } = facts;
    const forger = exact
      ? RawForger.open({ from: server, to: client, udpPort: 4791, sourcePort: clientQp.sourcePort })
      : await asServer(facts);
    if (forger === undefined) return { skipped: 'needs a raw socket: root and koffi' };
    await atPace(perSecond, facts, forger, () => forger.send({ opcode: 'CNP CNP', destQpn: clientQp.qpn, becn: true }));
    return { sent: forger.sent };
  },
  achieved: ({ seen, goodputRatio, rateBps }) => ({
    text:
      seen.skipped ??
      `${seen.sent} CNPs; rate ${(rateBps / 1e9).toPrecision(3)} of 40 Gb/s; ${served({ goodputRatio })}`,
    won: goodputRatio < 0.6 || rateBps < 20e9,
  }),
});

/** @type {Attack[]} */
export const PACKET_ATTACKS = [
  {
    name: 'spoofed-write',
    title: 'one WRITE with known QPN, PSN and rkey from another UDP port of the peer’s address',
    from: 'local user who knows QPN, PSN, rkey',
    paused: true,
    async run(facts) {
      const forger = await asClient(facts);
      await forger.send(
        {
          opcode: 'RC RDMA_WRITE_ONLY',
          destQpn: facts.serverQp.qpn,
          psn: facts.serverQp.rqPsn,
          va: BigInt(facts.region.addr) + BigInt(TARGET_OFFSET),
          rkey: facts.region.rkey,
          dmaLength: FORGED.length,
          ackReq: true,
        },
        FORGED,
      );
      await delay(200);
      forger.close();
      return { sent: 1 };
    },
    achieved: ({ memory, after }) => ({
      text: `memory ${memory.startsWith('FORGED') ? 'changed' : 'unchanged'}; honest peer: ${after.work.failure ?? 'served'}`,
      won: memory.startsWith('FORGED') || after.work.failure !== undefined,
    }),
  },
  {
    name: 'psn-scan-selective',
    title: 'a SEND for every 1,000th PSN, at a connection with selective repeat',
    from: 'local user who knows the QPN',
    recovery: 'selective-repeat',
    run: async (facts) =>
      scan(
        facts,
        await asClient(facts),
        (turn) => ({ opcode: 'RC SEND_ONLY', destQpn: facts.serverQp.qpn, psn: (turn * 1000) % PSNS, ackReq: true }),
        PSNS / 1000,
      ),
    achieved: forgedMessages,
  },
  {
    name: 'psn-scan-selective-port',
    title: 'the same from the right port',
    from: 'off path, knows QPN and port',
    recovery: 'selective-repeat',
    run: (facts) =>
      scan(
        facts,
        asClientExactly(facts),
        (turn) => ({ opcode: 'RC SEND_ONLY', destQpn: facts.serverQp.qpn, psn: (turn * 1000) % PSNS, ackReq: true }),
        Number.POSITIVE_INFINITY,
      ),
    achieved: forgedMessages,
  },
  {
    name: 'psn-scan-port',
    title: 'SENDs with one PSN after another at go-back-N, from the right port',
    from: 'off path, knows QPN and port',
    run: (facts) =>
      scan(
        facts,
        asClientExactly(facts),
        (turn) => ({ opcode: 'RC SEND_ONLY', destQpn: facts.serverQp.qpn, psn: turn % PSNS, ackReq: true }),
        Number.POSITIVE_INFINITY,
      ),
    achieved: forgedMessages,
  },
  cnps(100, false),
  cnps(5000, false),
  cnps(5000, true),
  {
    name: 'ack-unsent',
    title: 'ACKs of what was never sent, for every PSN near the right one, from the right port',
    from: 'off path, knows QPN, port and about the PSN',
    async run(facts) {
      const { server, client, clientQp } = facts;
      const forger = RawForger.open({ from: server, to: client, udpPort: 4791, sourcePort: clientQp.sourcePort });
      return scan(
        facts,
        forger,
        (turn) => ({
          opcode: 'RC ACKNOWLEDGE',
          destQpn: clientQp.qpn,
          psn: (clientQp.sqPsn + 37 * turn) % PSNS,
          syndrome: 0x1f,
          msn: 0,
        }),
        Number.POSITIVE_INFINITY,
      );
    },
    achieved: ({ seen, after, ...rest }) => ({
      text: seen.skipped ?? `${seen.sent} ACKs; honest peer: ${after.work.failure ?? 'served'}, ${served(rest)}`,
      won: after.work.failure !== undefined,
    }),
  },
  {
    name: 'garbage',
    title: 'datagrams of random bytes, and packets for the connection with a wrong ICRC, 5,000 a second',
    from: 'anywhere',
    async run(facts) {
      const forger = await LocalForger.open({ from: facts.stranger, to: facts.server, udpPort: facts.udpPort });
      const noise = randomBytes(65_536);
      await atPace(5000, facts, forger, (i) => {
        const at = (i * 127) % 60_000;
        if (i % 3 > 0) return forger.sendBytes(noise.subarray(at, at + (i % 2000)));
        return forger.send({ opcode: 'RC SEND_ONLY', destQpn: facts.serverQp.qpn, psn: i }, FORGED);
      });
      return { sent: forger.sent };
    },
    achieved: ({ seen, state, before, after, goodputRatio }) => ({
      text: `${seen.sent} sent, ${state.counters.rx_drop_parse - before.counters.rx_drop_parse} malformed; honest peer: ${after.work.failure ?? served({ goodputRatio })}`,
      won: after.work.failure !== undefined,
    }),
  },
  {
    name: 'replay',
    title: 'packets recorded from the live connection, shuffled, byte for byte from the right port, 5,000 a second',
    from: 'on path, or who has the capture',
    pcap: true,
    async run(facts) {
      const { server, pcap, clientQp } = facts;
      const forger = asClientExactly(facts);
      if (forger === undefined) return { skipped: 'needs a raw socket: root and koffi' };
      const packets = [...new CaptureReader(readFileSync(/** @type {string} */ (pcap)))]
        .map(udpOf)
        .filter((udp) => udp !== undefined)
        .filter((udp) => udp.sourcePort === clientQp.sourcePort && udp.destination.text === server);
      await atPace(packets.length > 0 ? 5000 : 0, facts, forger, () =>
        forger.sendBytes(packets[Math.floor(Math.random() * packets.length)].payload),
      );
      return { sent: forger.sent, recorded: packets.length };
    },
    achieved: ({ seen, state, after, goodputRatio }) => ({
      text:
        seen.skipped ??
        `${seen.sent} of ${seen.recorded} recorded; ${state.forged} messages twice; honest peer: ${after.work.failure ?? 'served'}, ${served({ goodputRatio })}`,
      won: after.work.failure !== undefined || state.forged > 0,
    }),
  },
];

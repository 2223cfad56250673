// @ts-check
/** What a stranger does to the TCP port of `listen()`. */

import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { IpAddress } from '../../../build/src/packet/index.js';

/** @typedef {import('../attacks.js').Attack} Attack @typedef {import('../attacks.js').Facts} Facts */

const nested = (/** @type {number} */ depth) => `${'['.repeat(depth)}${']'.repeat(depth)}`;

/** @param {string} gidOf @param {object} [claims] */
function helloOf(gidOf, claims = {}) {
  return `${JSON.stringify({
    rocev2: 1,
    gid: IpAddress.parse(gidOf).gidHex,
    udpPort: 4791,
    qpn: 77,
    psn: 1,
    mtu: 1024,
    recovery: 'go-back-n',
    receiveBudgetPackets: 128,
    maxDestRdAtomic: 16,
    purpose: {},
    ...claims,
  })}\n`;
}

/** A connection, and whatever came back over it. @param {Facts} facts @param {string} from */
function open({ server, tcpPort }, from) {
  const socket = connect({ host: server, port: tcpPort, localAddress: from });
  const peer = { socket, text: '', isOpen: false, turn: 0 };
  socket.setEncoding('utf8');
  socket.on('error', () => {});
  socket.on('connect', () => (peer.isOpen = true));
  socket.on('close', () => (peer.isOpen = false));
  socket.on('data', (text) => (peer.text += text));
  return peer;
}

/** @param {Facts} facts @param {number} count
 * @param {(peer: ReturnType<typeof open>, turn: number, index: number) => void} speak Called every 0.2 s for each that is open. */
async function hold(facts, count, speak) {
  const peers = Array.from({ length: count }, () => open(facts, facts.stranger));
  let held = 0;
  while (facts.going()) {
    for (const [i, peer] of peers.entries()) if (peer.isOpen) speak(peer, peer.turn++, i);
    await delay(200);
    held = Math.max(held, peers.filter(({ isOpen }) => isOpen).length);
  }
  const end = peers.filter(({ isOpen }) => isOpen).length;
  const answered = peers.filter(({ text }) => text.includes('"qpn"')).length;
  const refusal = peers.map(({ text }) => /"refused":"([^"]*)"/.exec(text)?.[1]).find((text) => text !== undefined);
  for (const { socket } of peers) socket.destroy();
  return { held, end, answered, refusal };
}

const connectsBlocked = (/** @type {import('../attacks.js').Outcome} */ { after, seen }) => {
  const { attempts, times } = after.comers.tcp;
  return {
    text: `${seen.held} held at once, ${seen.end} at the end; ${times.length} of ${attempts} honest connects`,
    won: times.length < attempts * 0.99,
  };
};

/** @param {number} count @returns {Attack} */
const silent = (count) => ({
  name: `silent-${count}`,
  title: `${count} TCP connections that say nothing`,
  from: 'anywhere',
  run: (facts) => hold(facts, count, () => {}),
  achieved: connectsBlocked,
});

/** @type {Attack[]} */
export const EXCHANGE_ATTACKS = [
  {
    name: 'nested-json',
    title: 'a barrier nested 30,000 deep, where one is expected',
    from: 'anywhere',
    async run(facts) {
      let tries = 0;
      for (; facts.going(); tries++) {
        const { socket } = open(facts, facts.stranger);
        socket.write(helloOf(facts.stranger));
        await delay(50);
        socket.write(`{"barrier": ${nested(30_000)}}\n`);
        await delay(50);
        socket.destroy();
      }
      return { tries };
    },
    achieved: ({ seen, state }) => ({
      text:
        state === undefined ? 'the process ended' : `${seen?.tries} tries; listener: ${state.ended.tcp ?? 'listens'}`,
      won: state === undefined || state.ended.tcp !== undefined,
    }),
  },
  silent(3),
  silent(100),
  silent(1000),
  {
    name: 'trickle-100',
    title: '100 TCP connections, a byte of a hello every 0.2 s',
    from: 'anywhere',
    run: (facts) => {
      const hello = helloOf(facts.stranger);
      return hold(facts, 100, ({ socket }, turn) => socket.write(hello[turn % hello.length]));
    },
    achieved: connectsBlocked,
  },
  {
    name: 'forged-hello',
    title: "8 hellos with the victim's gid and a receive budget of 2 packets",
    from: 'anywhere',
    run: (facts) => {
      const hello = helloOf(facts.client, { receiveBudgetPackets: 2 });
      return hold(facts, 8, ({ socket }, turn) => {
        if (turn === 0) socket.write(`${hello}{"barrier":"connected"}\n`);
      });
    },
    achieved: ({ seen }) => ({
      text: `${seen.answered} of 8 accepted${seen.refusal === undefined ? '' : `, refused: ${seen.refusal}`}`,
      won: seen.answered > 0,
    }),
  },
  {
    name: 'exchanges-600',
    title: '600 complete connections of one address',
    from: 'anywhere',
    run: (facts) =>
      hold(facts, 600, ({ socket }, turn, i) => {
        if (turn === 0) socket.write(`${helloOf(facts.stranger, { qpn: 1000 + i })}{"barrier":"connected"}\n`);
      }),
    achieved: ({ seen, before, state }) => ({
      text: `${seen.answered} accepted, ${Math.round(state.rssMiB - before.rssMiB)} MiB more${seen.refusal === undefined ? '' : `, refused: ${seen.refusal}`}`,
      won: seen.answered >= 600,
    }),
  },
];

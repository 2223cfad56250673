// @ts-check
/**
 * An attacker in the path between two devices with frame ports: every frame of both goes through two of its UDP sockets. It sees all, and may change, withhold, repeat
 * and make up frames. What cannot be seen in protected packets (key and address of memory) it has been told.
 *
 * `bench/secure-attacks.js` measures what the honest pair gets done meanwhile, `test/secure/attacks-live.slow.test.ts` what becomes of each attack.
 */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { IpAddress } from '../../build/src/packet/address.js';
import { IcrcFlow, sealIcrc } from '../../build/src/packet/icrc.js';
import { OPCODES } from '../../build/src/packet/opcode.js';
import { isPsp, PSP_ICV_BYTES, PSP_PREFIX_BYTES } from '../../build/src/packet/psp.js';
import { emitRoce } from '../../build/src/packet/roce.js';
import { writeUdpLength } from '../../build/src/packet/udp.js';

const IP_AT = 14;
const UDP_AT = IP_AT + 20;
const PAYLOAD_AT = UDP_AT + 8;
const ETHERTYPE_IPV4 = 0x0800;
const ICRC_BYTES = 4;
const FATAL_NAK = 0x61;
const SEEN_MAX = 256;
const HOST = '127.0.0.1';

/** @typedef {'a' | 'b'} End */
/**
 * Attacks differ in when they strike: `inject` at any time, `before` when a packet to b comes by, which arrives behind what is made of it.
 *
 * @typedef {{name: string, does: string, inject?: (path: OnPath) => void, before?: (path: OnPath, frame: Buffer) => void}} Attack
 */

const opcodeOf = (/** @type {string} */ name) =>
  OPCODES.findIndex((info) => info !== undefined && `${info.transport} ${info.name}` === name);

/** Whether a frame carries a RoCEv2 packet, plain or protected. */
const isRoce = (/** @type {Buffer} */ frame) =>
  frame.readUInt16BE(12) === ETHERTYPE_IPV4 && frame[IP_AT + 9] === 17 && frame.readUInt16BE(UDP_AT + 2) === 4791;

const isProtected = (/** @type {Buffer} */ frame) => isPsp(frame, PAYLOAD_AT, frame.length - PAYLOAD_AT);

/** The frame with another UDP payload. */
function withPayload(/** @type {Buffer} */ frame, /** @type {Uint8Array} */ payload) {
  const made = Buffer.concat([frame.subarray(0, PAYLOAD_AT), payload]);
  writeUdpLength(made, IP_AT, UDP_AT, payload.length);
  return made;
}

/** The frame with some bytes of its UDP payload changed. */
function changed(/** @type {Buffer} */ frame, /** @type {(payload: Buffer) => void} */ change) {
  const payload = Buffer.from(frame.subarray(PAYLOAD_AT));
  change(payload);
  return withPayload(frame, payload);
}

/** One attacker between ends a and b. */
export class OnPath {
  /** RoCEv2 frames that passed, the last ones, by where they went. @type {Record<End, Buffer[]>} */
  seen = { a: [], b: [] };
  /** From the packets that passed: QPN of an end, and the last PSN that was sent to it. @type {Record<End, {qpn: number, psn: number}>} */
  learned = { a: { qpn: 0, psn: 0 }, b: { qpn: 0, psn: 0 } };
  /** Key and address of b's memory. */
  known = { rkey: 0, addr: 0n };
  /** What is being done. @type {Attack | undefined} */
  attack = undefined;
  /** So many strikes of an attack that waits for packets are due. */
  due = 0;
  /** What becomes of a frame: another one in its place, or none. @type {(frame: Buffer, to: End) => Buffer | undefined} */
  replace = (frame) => frame;
  /** Frames made up or changed. */
  struck = 0;
  /** @type {Record<End, {socket: import('node:dgram').Socket, port: number, device: number}>} */
  #ends;

  constructor(/** @type {OnPath['_ends']} */ ends) {
    this.#ends = ends;
    for (const to of /** @type {End[]} */ (['a', 'b'])) {
      // What comes from one end goes to the other.
      ends[to].socket.on('message', (frame, { port }) => {
        ends[to].device = port;
        this.#pass(frame, to === 'a' ? 'b' : 'a');
      });
    }
  }

  /** @type {Record<End, {socket: import('node:dgram').Socket, port: number, device: number}>} */
  get _ends() {
    return this.#ends;
  }

  static async open() {
    const end = async () => {
      const socket = createSocket('udp4');
      socket.bind(0, HOST);
      await once(socket, 'listening');
      socket.setRecvBufferSize(4 << 20);
      return { socket, port: socket.address().port, device: 0 };
    };
    return new OnPath({ a: await end(), b: await end() });
  }

  /** What the device at an end is opened with. */
  frameOf(/** @type {End} */ end) {
    return { local: `${HOST}:0`, remote: `${HOST}:${this.#ends[end].port}` };
  }

  close() {
    for (const { socket } of Object.values(this.#ends)) socket.close();
  }

  #pass(/** @type {Buffer} */ frame, /** @type {End} */ to) {
    if (!isRoce(frame)) return this.#send(to, frame);
    const bth = PAYLOAD_AT + (isProtected(frame) ? PSP_PREFIX_BYTES : 0);
    if (frame.length >= bth + 12) {
      this.learned[to].qpn = frame.readUIntBE(bth + 5, 3);
      this.learned[to].psn = frame.readUIntBE(bth + 9, 3);
      const seen = this.seen[to];
      seen.push(frame);
      if (seen.length > SEEN_MAX) seen.shift();
    }
    if (to === 'b' && this.due >= 1 && this.attack?.before !== undefined) {
      this.due--;
      this.attack.before(this, frame);
    }
    const passed = this.replace(frame, to);
    if (passed !== undefined) this.#send(to, passed);
  }

  #send(/** @type {End} */ to, /** @type {Buffer} */ frame) {
    const { socket, device } = this.#ends[to];
    if (device !== 0) socket.send(frame, device, HOST);
  }

  /** Sends a frame of the attacker's own. */
  strike(/** @type {End} */ to, /** @type {Buffer | undefined} */ frame) {
    if (frame === undefined) return;
    this.struck++;
    this.#send(to, frame);
  }

  /** One of the last frames that went there; older ones first. */
  recorded(/** @type {End} */ to, index = Math.floor(Math.random() * this.seen[to].length)) {
    return this.seen[to][index];
  }

  /** A plain packet in the name of the other end, right in every field that the attacker knows. */
  plain(
    /** @type {End} */ to,
    /** @type {string} */ opcode,
    /** @type {Partial<import('../../build/src/packet/roce.js').RoceFields>} */ fields,
    payload = new Uint8Array(0),
  ) {
    const like = this.recorded(to, 0);
    if (like === undefined) return undefined;
    const packet = emitRoce({ opcode: opcodeOf(opcode), destQpn: this.learned[to].qpn, ...fields }, payload);
    const bytes = new Uint8Array(packet.length + ICRC_BYTES);
    bytes.set(packet);
    const address = (/** @type {number} */ at) => IpAddress.parse([...like.subarray(at, at + 4)].join('.'));
    const flow = new IcrcFlow(address(IP_AT + 12), address(IP_AT + 16), like.readUInt16BE(UDP_AT), 4791);
    sealIcrc(flow, bytes, 0, bytes.length, like.readUInt16BE(IP_AT + 4), undefined);
    return withPayload(like, bytes);
  }
}

/** A WRITE into b's memory. */
export function forgedWrite(/** @type {OnPath} */ path, payload = new Uint8Array(64).fill(0xee)) {
  const { rkey, addr } = path.known;
  const va = { vaHigh: Number(addr >> 32n), vaLow: Number(addr & 0xffff_ffffn) };
  const psn = (path.learned.b.psn + 1) & 0xffffff;
  return path.plain('b', 'RC RDMA_WRITE_ONLY', { psn, rkey, dmaLength: payload.length, ...va }, payload);
}

const some = (/** @type {number} */ below) => Math.floor(Math.random() * below);
const payloadOf = (/** @type {Buffer} */ frame) => frame.subarray(PAYLOAD_AT);

/** All attacks of docs/security.md that are made of packets. @type {readonly Attack[]} */
export const ATTACKS = [
  {
    name: 'injection',
    does: 'a plain WRITE, right in every field',
    inject: (path) => path.strike('b', forgedWrite(path)),
  },
  {
    name: 'replacement',
    does: 'a protected packet with one bit changed anywhere',
    before: (path, frame) => path.strike('b', flipped(frame)),
  },
  {
    name: 'fatal NAK',
    does: 'a plain NAK that ends a connection',
    inject: (path) => {
      const { psn } = path.learned.b;
      path.strike('a', path.plain('a', 'RC ACKNOWLEDGE', { psn, syndrome: FATAL_NAK, msn: 0 }));
    },
  },
  {
    name: 'false ACK',
    does: 'a plain ACK of what is under way',
    inject: (path) => {
      const { psn } = path.learned.b;
      path.strike('a', path.plain('a', 'RC ACKNOWLEDGE', { psn, syndrome: 0x1f, msn: 1 }));
    },
  },
  {
    name: 'CNP flood',
    does: 'plain congestion notifications',
    inject: (path) => path.strike('a', path.plain('a', 'CNP CNP', { becn: true })),
  },
  {
    name: 'replay',
    does: 'a recorded packet again, in either direction',
    inject: (path) => {
      const to = some(2) === 0 ? 'a' : 'b';
      path.strike(to, path.recorded(to));
    },
  },
  {
    name: 'truncation',
    does: 'a protected packet, cut anywhere',
    before: (path, frame) => {
      const payload = payloadOf(frame);
      path.strike('b', withPayload(frame, payload.subarray(0, some(payload.length))));
    },
  },
  {
    name: 'reflection',
    does: 'a protected packet back to its sender, with the addresses of an answer',
    before: (path, frame) => {
      const like = path.recorded('a');
      if (like !== undefined) path.strike('a', withPayload(like, payloadOf(frame)));
    },
  },
  {
    name: 'downgrade',
    does: 'the RoCEv2 packet out of its protection, as if it were plain',
    before: (path, frame) =>
      path.strike('b', withPayload(frame, payloadOf(frame).subarray(PSP_PREFIX_BYTES, -PSP_ICV_BYTES))),
  },
  {
    name: 'unknown SPI',
    does: 'a protected packet of another association',
    before: (path, frame) =>
      path.strike(
        'b',
        changed(frame, (bytes) => bytes.writeUInt32BE(1 + some(0x7fffffff), 4)),
      ),
  },
  {
    name: 'key exhaustion',
    does: 'the other key phase and an IV far ahead, so that keys and window would move on',
    before: (path, frame) =>
      path.strike(
        'b',
        changed(frame, (bytes) => {
          bytes[4] ^= 0x80;
          bytes.writeUInt32BE(some(0x1fffff), 8);
        }),
      ),
  },
];

/** With one bit of its UDP payload changed. */
export function flipped(/** @type {Buffer} */ frame) {
  return changed(frame, (bytes) => {
    bytes[some(bytes.length)] ^= 1 << some(8);
  });
}

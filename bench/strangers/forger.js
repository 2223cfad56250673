// @ts-check
/**
 * Sockets that forge: of a local user, who sends from every loopback address but not from a port that is taken; and raw ones (root, koffi),
 * which are what an attacker elsewhere in the network has: any source address and port.
 */

import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { emitRoce, IcrcFlow, IpAddress, OPCODES, sealIcrc } from '../../build/src/packet/index.js';

const IP_BYTES = 20;
const UDP_BYTES = 8;
const ICRC_BYTES = 4;

/** By transport and name: `RC RDMA_WRITE_ONLY`. @type {Map<string, number>} */
const OPCODE_OF = new Map();
for (const info of OPCODES) if (info !== undefined) OPCODE_OF.set(`${info.transport} ${info.name}`, info.opcode);

/** BTH .. ICRC. @param {IcrcFlow} flow @param {any} fields @param {Uint8Array} [payload] */
function forge(flow, { opcode, va, ...fields }, payload) {
  const address = va === undefined ? {} : { vaHigh: Number(va >> 32n), vaLow: Number(va & 0xffffffffn) };
  const packet = emitRoce({ ...fields, ...address, opcode: /** @type {number} */ (OPCODE_OF.get(opcode)) }, payload);
  const bytes = new Uint8Array(packet.length + ICRC_BYTES);
  bytes.set(packet);
  sealIcrc(flow, bytes, 0, bytes.length, 0, undefined);
  return bytes;
}

/** Lets the process hear that it is to stop, from time to time. @param {number} sent */
async function breathe(sent) {
  if (sent % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
}

/** @typedef {{from: string, to: string, udpPort: number, sourcePort?: number}} Way */

/** A socket of a local user. */
export class LocalForger {
  sent = 0;
  #socket;
  #way;
  #flow;

  /** @param {import('node:dgram').Socket} socket @param {Way} way */
  constructor(socket, way) {
    this.#socket = socket;
    this.#way = way;
    this.#flow = new IcrcFlow(IpAddress.parse(way.from), IpAddress.parse(way.to), socket.address().port, way.udpPort);
  }

  /** From any free port, or from `sourcePort`. @param {Way} way */
  static async open(way) {
    const socket = createSocket('udp4');
    socket.on('error', () => {}); // What cannot be sent is lost.
    socket.bind(way.sourcePort ?? 0, way.from);
    await once(socket, 'listening');
    return new LocalForger(socket, way);
  }

  /** @param {(bytes: Buffer) => void} handler */
  onDatagram(handler) {
    this.#socket.on('message', handler);
  }

  /** @param {any} fields @param {Uint8Array} [payload] */
  send(fields, payload) {
    return this.sendBytes(forge(this.#flow, fields, payload));
  }

  /** @param {Uint8Array} bytes */
  async sendBytes(bytes) {
    await new Promise((resolve) => this.#socket.send(bytes, this.#way.udpPort, this.#way.to, resolve));
    await breathe(++this.sent);
  }

  close() {
    this.#socket.close();
  }
}

/** A raw socket; undefined where this user may not have one. */
export class RawForger {
  sent = 0;
  #fd;
  #libc;
  #way;
  #flow;
  #target;

  /** @param {Way & {sourcePort: number}} way */
  static open(way) {
    try {
      const koffi = createRequire(import.meta.url)('koffi');
      const lib = koffi.load(null);
      const libc = {
        socket: lib.func('int socket(int, int, int)'),
        sendto: lib.func('long sendto(int, const void *, size_t, int, const void *, uint32_t)'),
        close: lib.func('int close(int)'),
      };
      const fd = libc.socket(2, 3, 255); // AF_INET, SOCK_RAW, IPPROTO_RAW: with an IP header of our own.
      return fd < 0 ? undefined : new RawForger(fd, libc, way);
    } catch {
      return undefined;
    }
  }

  /** @param {number} fd @param {any} libc @param {Way & {sourcePort: number}} way */
  constructor(fd, libc, way) {
    this.#fd = fd;
    this.#libc = libc;
    this.#way = way;
    const to = IpAddress.parse(way.to);
    this.#flow = new IcrcFlow(IpAddress.parse(way.from), to, way.sourcePort, way.udpPort);
    this.#target = Buffer.alloc(16);
    this.#target.writeUInt16LE(2, 0);
    this.#target.set(to.bytes, 4);
  }

  /** @param {any} fields @param {Uint8Array} [payload] */
  send(fields, payload) {
    return this.sendBytes(forge(this.#flow, fields, payload));
  }

  /** @param {Uint8Array} bytes */
  async sendBytes(bytes) {
    const packet = Buffer.alloc(IP_BYTES + UDP_BYTES + bytes.length);
    packet[0] = 0x45;
    packet.writeUInt16BE(0x4000, 6); // DF. The kernel fills in length, checksum, and an identification.
    packet[8] = 64;
    packet[9] = 17;
    packet.set(IpAddress.parse(this.#way.from).bytes, 12);
    packet.set(IpAddress.parse(this.#way.to).bytes, 16);
    packet.writeUInt16BE(this.#way.sourcePort ?? 0, IP_BYTES);
    packet.writeUInt16BE(this.#way.udpPort, IP_BYTES + 2);
    packet.writeUInt16BE(UDP_BYTES + bytes.length, IP_BYTES + 4);
    packet.set(bytes, IP_BYTES + UDP_BYTES);
    this.#libc.sendto(this.#fd, packet, packet.length, 0, this.#target, 16);
    await breathe(++this.sent);
  }

  close() {
    this.#libc.close(this.#fd);
  }
}

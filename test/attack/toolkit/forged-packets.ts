/** Datagrams as a stranger forges them: right in every field that the attacker knows, with a right ICRC. */

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { IpAddress } from '../../../src/packet/address.js';
import { IcrcFlow, sealIcrc } from '../../../src/packet/icrc.js';
import { OPCODES } from '../../../src/packet/opcode.js';
import { emitRoce, ICRC_BYTES, type RoceFields } from '../../../src/packet/roce.js';

/** From where to where a forged packet says it goes. */
export interface ForgedPath {
  /** Source address. */
  readonly from: string;
  /** Source port. */
  readonly sourcePort: number;
  /** Destination address. */
  readonly to: string;
  /** Destination port, default 4791. */
  readonly udpPort?: number;
}

/** `va` whole, and the opcode by its name in the spec: `RC RDMA_WRITE_ONLY`. */
export type ForgedFields = Omit<RoceFields, 'opcode'> & { readonly opcode: string; readonly va?: bigint };

const OPCODE_OF: ReadonlyMap<string, number> = new Map(
  OPCODES.filter((info) => info !== undefined).map(({ transport, name, opcode }) => [`${transport} ${name}`, opcode]),
);

/** BTH .. ICRC of a packet with the given fields; the others are zero. */
export function forgePacket(
  path: ForgedPath,
  fields: ForgedFields,
  payload: Uint8Array = new Uint8Array(0),
): Uint8Array {
  const { opcode: name, va, ...rest } = fields;
  const opcode = OPCODE_OF.get(name);
  if (opcode === undefined) throw new RangeError(`${name} is none of ${[...OPCODE_OF.keys()].join(', ')}`);
  const address = va === undefined ? {} : { vaHigh: Number(va >> 32n), vaLow: Number(va & 0xffffffffn) };
  const packet = emitRoce({ ...rest, ...address, opcode }, payload);
  const bytes = new Uint8Array(packet.length + ICRC_BYTES);
  bytes.set(packet);
  const flow = new IcrcFlow(
    IpAddress.parse(path.from),
    IpAddress.parse(path.to),
    path.sourcePort,
    path.udpPort ?? 4791,
  );
  sealIcrc(flow, bytes, 0, bytes.length, 0, undefined);
  return bytes;
}

/**
 * A UDP socket of a local attacker: on loopback every program may send from every address of 127.0.0.0/8, the victim's included, from any port
 * that is free.
 */
export class Forger {
  /** Datagrams that left. */
  sent = 0;
  readonly #socket: Socket;
  readonly #path: ForgedPath;

  private constructor(socket: Socket, path: ForgedPath) {
    this.#socket = socket;
    this.#path = path;
  }

  /** Sends from `from`, from `sourcePort` or one that is free, to `to`. */
  static async open({ sourcePort = 0, ...path }: Omit<ForgedPath, 'sourcePort'> & { sourcePort?: number }) {
    const socket = createSocket('udp4');
    socket.bind(sourcePort, path.from);
    await once(socket, 'listening');
    return new Forger(socket, { ...path, sourcePort: socket.address().port });
  }

  get sourcePort(): number {
    return this.#path.sourcePort;
  }

  /** One packet with the given fields. */
  send(fields: ForgedFields, payload?: Uint8Array): Promise<void> {
    return this.sendBytes(forgePacket(this.#path, fields, payload));
  }

  /** A congestion notification for a queue pair. */
  cnp(destQpn: number): Promise<void> {
    return this.send({ opcode: 'CNP CNP', destQpn, becn: true });
  }

  /** Any bytes: garbage, or a packet of a capture. */
  sendBytes(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.send(bytes, this.#path.udpPort ?? 4791, this.#path.to, (error) => {
        if (error !== null) reject(error);
        else {
          this.sent++;
          resolve();
        }
      });
    });
  }

  close(): void {
    this.#socket.close();
  }
}

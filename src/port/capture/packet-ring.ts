import { readU24 } from '../../core/bytes.js';
import { HDR_AETH, OPCODES } from '../../packet/opcode.js';
import { BTH_BYTES } from '../../packet/roce.js';
import { type PacketDirection, type PacketObserver, SENT } from './observed-port.js';

/** Where BTH has its destination QPN and PSN (IBTA vol. 1 §9.2). */
const QPN_OFFSET = 5;
const PSN_OFFSET = 9;
const NO_SYNDROME = 0xff;

export interface RecordedPacket {
  readonly timeNs: number;
  readonly isSent: boolean;
  /** Of the BTH, 0..255. */
  readonly opcode: number;
  /** Of the BTH, 24 bits. */
  readonly psn: number;
  /** Of the BTH, 24 bits. */
  readonly destQpn: number;
  readonly ipId: number;
  readonly syndrome: number | undefined;
}

export class PacketRing implements PacketObserver {
  readonly #nowNs: () => number;
  readonly #times: Float64Array;
  readonly #kinds: Uint32Array;
  readonly #psns: Uint32Array;
  readonly #qpns: Uint32Array;
  readonly #ipIds: Int32Array;
  #seen = 0;

  constructor(packets: number, nowNs: () => number) {
    this.#nowNs = nowNs;
    this.#times = new Float64Array(packets);
    this.#kinds = new Uint32Array(packets);
    this.#psns = new Uint32Array(packets);
    this.#qpns = new Uint32Array(packets);
    this.#ipIds = new Int32Array(packets);
  }

  packet(direction: PacketDirection, bytes: Uint8Array, offset: number, length: number, ipId: number): void {
    if (length < BTH_BYTES) return;
    const opcode = bytes[offset];
    const info = OPCODES[opcode];
    const hasAeth = info !== undefined && (info.headers & HDR_AETH) !== 0 && length >= BTH_BYTES + info.extBytes;
    const at = this.#seen++ % this.#times.length;
    this.#times[at] = this.#nowNs();
    this.#kinds[at] = opcode | ((hasAeth ? bytes[offset + BTH_BYTES] : NO_SYNDROME) << 8) | (direction << 16);
    this.#psns[at] = readU24(bytes, offset + PSN_OFFSET);
    this.#qpns[at] = readU24(bytes, offset + QPN_OFFSET);
    this.#ipIds[at] = ipId;
  }

  clear(): void {
    this.#seen = 0;
  }

  packets(): RecordedPacket[] {
    const capacity = this.#times.length;
    const count = Math.min(this.#seen, capacity);
    return Array.from({ length: count }, (_, i) => {
      const at = (this.#seen - count + i) % capacity;
      const kind = this.#kinds[at];
      const syndrome = (kind >>> 8) & 0xff;
      return {
        timeNs: this.#times[at],
        isSent: kind >>> 16 === SENT,
        opcode: kind & 0xff,
        psn: this.#psns[at],
        destQpn: this.#qpns[at],
        ipId: this.#ipIds[at],
        syndrome: syndrome === NO_SYNDROME ? undefined : syndrome,
      };
    });
  }
}

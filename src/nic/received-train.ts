/**
 * A train of datagrams whose ICRCs are checked by one CRC when the first has passed all other checks; if it is wrong,
 * each is checked separately, so that only damaged ones are dropped. Invariant: a datagram passes without its own check
 * only at its expected position in a train of its flow whose CRC was correct.
 */

import { type IcrcFlow, TRAIN_PACKETS_MAX, trainHolds } from '../packet/icrc.js';
import type { RxDatagram } from '../port/datagram.js';

/** For fewer packets, a CRC over all of them does not pay. */
const PACKETS_MIN = 4;
/** The CRC of shorter packets needs no native call. */
const PACKET_BYTES_MIN = 256;
/** A flow with this many wrong trains in a row probably has other identifications, and is not tried again. */
const MISSES_MAX = 3;

const NOTHING = new Uint8Array(0);

export class ReceivedTrain {
  #bytes: Uint8Array = NOTHING;
  #start = 0;
  #packetBytes = 0;
  #packets = 0;
  #next = 0;
  #flow: IcrcFlow | undefined;
  #missed: IcrcFlow | undefined;
  #misses = 0;

  /** `packets` datagrams of `packetBytes` each are consecutive from `bytes[offset]` on. */
  begin(bytes: Uint8Array, offset: number, packetBytes: number, packets: number): void {
    this.#flow = undefined;
    const mayHold = packets >= PACKETS_MIN && packets <= TRAIN_PACKETS_MAX && packetBytes >= PACKET_BYTES_MIN;
    this.#bytes = mayHold ? bytes : NOTHING;
    this.#start = offset;
    this.#next = offset;
    this.#packetBytes = packetBytes;
    this.#packets = packets;
  }

  holds(flow: IcrcFlow, { bytes, offset, length }: RxDatagram): boolean {
    if (bytes !== this.#bytes || offset !== this.#next || length !== this.#packetBytes) return false;
    if (offset === this.#start && !this.#sumIsRight(flow)) {
      this.#bytes = NOTHING;
      return false;
    }
    if (flow !== this.#flow || offset >= this.#start + this.#packets * length) return false;
    this.#next = offset + length;
    return true;
  }

  #sumIsRight(flow: IcrcFlow): boolean {
    if (flow === this.#missed && this.#misses >= MISSES_MAX) return false;
    if (trainHolds(flow, this.#bytes, this.#start, this.#packetBytes, this.#packets)) {
      this.#flow = flow;
      if (flow === this.#missed) this.#misses = 0;
      return true;
    }
    this.#misses = flow === this.#missed ? this.#misses + 1 : 1;
    this.#missed = flow;
    return false;
  }
}

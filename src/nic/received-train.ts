/**
 * Datagrams that the kernel kept together, whose ICRCs are checked by one sum when the first of them has passed all other checks. Where that sum is wrong each is checked by itself, so
 * that exactly the wrong ones are dropped.
 *
 * Invariant: a datagram passes without a sum of its own only if it stands where the one behind its predecessor has to, in a train of its own flow whose sum was right.
 */

import { type IcrcFlow, TRAIN_PACKETS_MAX, trainHolds } from '../packet/icrc.js';
import type { RxDatagram } from '../port/datagram.js';

/** Fewer are not worth a sum that may be in vain. */
const PACKETS_MIN = 4;
/** Shorter packets are summed without a call. */
const PACKET_BYTES_MIN = 256;
/** A flow whose trains were wrong so many times in a row is most likely numbered otherwise: it is not tried again. */
const MISSES_MAX = 3;

const NOTHING = new Uint8Array(0);

/** The train that is being received. */
export class ReceivedTrain {
  #bytes: Uint8Array = NOTHING;
  #start = 0;
  #packetBytes = 0;
  #packets = 0;
  /** Where the next datagram of the train stands. */
  #next = 0;
  /** Of the first datagram, once the sum was found right. */
  #flow: IcrcFlow | undefined;
  /** Whose trains were wrong lately, and how many in a row. */
  #missed: IcrcFlow | undefined;
  #misses = 0;

  /** `packets` datagrams of `packetBytes` each stand one behind another from `bytes[offset]` on. What was known of a train before is forgotten. */
  begin(bytes: Uint8Array, offset: number, packetBytes: number, packets: number): void {
    this.#flow = undefined;
    const mayHold = packets >= PACKETS_MIN && packets <= TRAIN_PACKETS_MAX && packetBytes >= PACKET_BYTES_MIN;
    this.#bytes = mayHold ? bytes : NOTHING;
    this.#start = offset;
    this.#next = offset;
    this.#packetBytes = packetBytes;
    this.#packets = packets;
  }

  /** True: the ICRC of this datagram is right. False: it has to be checked. */
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

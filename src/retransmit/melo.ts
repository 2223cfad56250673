/**
 * Selective repeat from one pool of bitmaps, in the manner of MELO (Lu et al., "Memory Efficient Loss Recovery for Hardware-based Transport in Datacenter", APNet 2017): a connection
 * takes a bitmap when it has a gap and gives it back when it has none, so that a NIC needs as many as have losses at the same time, and not one for each connection. A connection that finds the pool
 * empty drops what is ahead of its gap and sends the standard's NAK: its peer goes back.
 *
 * The paper has about 64 KB for all connections; a bitmap here is 128 bytes (1,024 packets), so 512 of them. What the paper calls data goes to the host's memory there; here it is
 * kept and executed in order, as with selective repeat. The pool belongs to the NIC.
 */

import type { ParametersOf, ParameterTable } from '../core/parameters.js';
import type { NicContext } from './nic-context.js';
import { SELECTIVE_SPAN } from './packet-accounts.js';
import { AHEAD_NAK, type BufferedPacket, defineRecovery } from './recovery.js';
import { SelectiveRepeatReceiver, SelectiveRepeatSender, selectiveRepeat } from './selective-repeat.js';

const MELO_TABLE = {
  /** Bitmaps of the NIC, 128 bytes each. 0: every gap is repaired by going back. */
  poolBitmaps: { default: (64 * 1024 * 8) / SELECTIVE_SPAN, min: 0, max: 65_536, whole: true },
} as const satisfies ParameterTable;

/** The bitmaps in use at one NIC. Connections with different `poolBitmaps` share it, each up to its own limit. */
class BitmapPool {
  /** Bitmaps that connections have. */
  used = 0;
}

/** Keeps what comes behind a gap while it has a bitmap. */
export class MeloReceiver extends SelectiveRepeatReceiver {
  readonly #pool: BitmapPool;
  readonly #limit: number;
  #hasBitmap = false;

  constructor({ poolBitmaps }: ParametersOf<typeof MELO_TABLE>, nic: NicContext) {
    super();
    this.#pool = nic.shared(BitmapPool);
    this.#limit = poolBitmaps;
  }

  override reset(windowPackets: number): void {
    super.reset(windowPackets);
    this.#giveBack();
  }

  override onAhead(psn: number, distance: number, bytes: Uint8Array, offset: number, length: number): number {
    if (!this.#hasBitmap) {
      if (this.#pool.used >= this.#limit) return AHEAD_NAK;
      this.#pool.used++;
      this.#hasBitmap = true;
    }
    const verdict = super.onAhead(psn, distance, bytes, offset, length);
    if (this.isBufferEmpty) this.#giveBack();
    return verdict;
  }

  override takeBuffered(expected: number): BufferedPacket | undefined {
    const buffered = super.takeBuffered(expected);
    if (this.isBufferEmpty) this.#giveBack();
    return buffered;
  }

  #giveBack(): void {
    if (!this.#hasBitmap) return;
    this.#hasBitmap = false;
    this.#pool.used--;
  }
}

/** The definition for the registry. */
export const melo = defineRecovery({
  name: 'melo',
  summary: 'selective repeat with one pool of bitmaps for all connections of a NIC, without one it goes back',
  parameters: MELO_TABLE,
  usesSack: true,
  /** As selective repeat, as long as the pool has bitmaps. */
  efficiency: selectiveRepeat.efficiency!,
  sender: () => new SelectiveRepeatSender(),
  receiver: (parameters, nic) => new MeloReceiver(parameters, nic),
});

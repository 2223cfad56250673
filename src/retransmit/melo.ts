/**
 * Selective repeat from one pool of bitmaps, in the manner of MELO (Lu et al., "Memory Efficient Loss Recovery for
 * Hardware-based Transport in Datacenter", APNet 2017): a connection holds a bitmap only while it has a gap. Without
 * one it drops packets ahead of the gap and sends the standard NAK, so its peer goes back. The paper has about 64 KB in
 * total; a bitmap here is 128 bytes (1,024 packets), so 512 of them. Packets ahead are buffered and executed in order,
 * as with selective repeat, not written to host memory. The pool belongs to the NIC.
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

/** Connections with different `poolBitmaps` share it, each up to its own limit. */
class BitmapPool {
  used = 0;
}

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

export const melo = defineRecovery({
  name: 'melo',
  summary: 'selective repeat with one pool of bitmaps for all connections of a NIC; go-back-N if the pool is empty',
  parameters: MELO_TABLE,
  usesSack: true,
  efficiency: selectiveRepeat.efficiency!,
  sender: () => new SelectiveRepeatSender(),
  receiver: (parameters, nic) => new MeloReceiver(parameters, nic),
});

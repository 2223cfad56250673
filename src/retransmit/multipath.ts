/**
 * One connection over many paths: each packet has its own UDP source port, its entropy, so that the switches of a
 * network with equal paths spread the packets of one queue pair over all of them. Similar to Ultra Ethernet and MRC,
 * but compatible with neither.
 *
 * - Entropies: `paths` source ports from that of the flow on. `choice` selects the next one: 0 one for all (ECMP), 1 in
 *   turn (spraying), 2 REPS, 3 the bitmap of penalties. Acknowledgements and READ responses take them in turn.
 * - Feedback: the trailer of a data packet contains its entropy and the time at which it left; the acknowledgement
 *   echoes both, and whether the packet was marked (packet/int-trailer.ts). SACK reports arrived packets, as for
 *   selective repeat; its bitmap grows to 1,024 bits, because one slow path delays more than 64.
 * - Losses are detected by time, as RACK does, because order means nothing on many paths. A packet that a switch has
 *   trimmed is known to be lost at once.
 * - Placement: the receiver keeps packets ahead in the store of selective repeat, and executes them in order. Messages
 *   of a queue pair keep their order, and packets of an unauthenticated peer are compared before they are written; both
 *   need the store. MRC has neither, and writes each packet where its address says.
 *
 * A port whose source port is fixed, a datagram socket, has one entropy value. Then this is RACK with echoes.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { ENTROPIES_MAX } from '../packet/int-trailer.js';
import { type EntropyChoice, RoundRobinEntropies, SingleEntropy } from './entropy-choice.js';
import { PACKET_LOST, PACKET_OUTSTANDING, PACKET_RESENT, SELECTIVE_SPAN, SPAN_MASK } from './packet-accounts.js';
import { PathPenaltyBitmap } from './path-penalty-bitmap.js';
import { RACK_TABLE, RackSender } from './rack.js';
import { defineRecovery, LOSS_TIMEOUT } from './recovery.js';
import { RecycledEntropies } from './recycled-entropies.js';
import { SelectiveRepeatReceiver, selectiveRepeat } from './selective-repeat.js';

/** `choice`: one entropy value, as with ECMP. */
export const CHOICE_ECMP = 0;
/** `choice`: all entropies in turn. */
export const CHOICE_SPRAY = 1;
/** `choice`: {@link RecycledEntropies}. */
export const CHOICE_REPS = 2;
/** `choice`: {@link PathPenaltyBitmap}. */
export const CHOICE_BITMAP = 3;

const MULTIPATH_TABLE = {
  /** 64 as in the Ultra Ethernet Consortium's htsim; more than there are paths, since switches hash them. */
  paths: { default: 64, min: 1, max: ENTROPIES_MAX, whole: true, agreed: true },
  /** 0 ECMP, 1 spraying, 2 REPS, 3 bitmap. */
  choice: { default: CHOICE_REPS, min: CHOICE_ECMP, max: CHOICE_BITMAP, whole: true },
  /** REPS: how long a timeout freezes the ring. */
  freezeNs: { default: 1_000_000, ...LIMITS.timeOrZeroNs },
  ...RACK_TABLE,
} as const satisfies ParameterTable;

type MultipathParameters = ParametersOf<typeof MULTIPATH_TABLE>;

const NO_ENTROPY = 0xffff;

function entropyChoice({ choice, paths, freezeNs }: MultipathParameters): EntropyChoice {
  switch (choice) {
    case CHOICE_SPRAY:
      return new RoundRobinEntropies(paths);
    case CHOICE_REPS:
      return new RecycledEntropies(paths, freezeNs);
    case CHOICE_BITMAP:
      return new PathPenaltyBitmap(paths);
    default:
      return new SingleEntropy();
  }
}

/** Losses by time, entropies by the outcomes of packets. */
export class MultipathSender extends RackSender {
  override readonly wantsEcho = true;
  readonly #parameters: MultipathParameters;
  #choice: EntropyChoice;
  /** The entropy of the newest copy, by slot. */
  readonly #entropyOf = new Uint16Array(SELECTIVE_SPAN).fill(NO_ENTROPY);
  #chosen = NO_ENTROPY;
  #nowNs = 0;

  constructor(parameters: MultipathParameters) {
    super(parameters);
    this.#parameters = parameters;
    this.#choice = entropyChoice(parameters);
  }

  override reset(psn: number): void {
    super.reset(psn);
    this.#choice = entropyChoice(this.#parameters);
    this.#entropyOf.fill(NO_ENTROPY);
    this.#chosen = NO_ENTROPY;
  }

  override nextEntropy(now: number): number {
    this.#chosen = this.#choice.next(now);
    return this.#chosen;
  }

  override onSent(psn: number, psns: number, next: number, now: number): void {
    super.onSent(psn, psns, next, now);
    this.#nowNs = now;
    for (let k = 0; k < psns; k++) this.#entropyOf[(psn + k) & SPAN_MASK] = this.#chosen;
    this.#chosen = NO_ENTROPY;
  }

  override onAnswer(now: number): void {
    super.onAnswer(now);
    this.#nowNs = now;
  }

  override onEcho(entropy: number, isMarked: boolean): void {
    if (entropy >= this.#parameters.paths) return; // Trailers are not protected by the ICRC.
    if (isMarked) this.#choice.onMarked(entropy);
    else this.#choice.onGood(entropy, this.#nowNs);
  }

  protected override markLost(psn: number): void {
    const i = psn & SPAN_MASK;
    if (this.state[i] !== PACKET_LOST && this.#entropyOf[i] !== NO_ENTROPY) this.#choice.onLost(this.#entropyOf[i]);
    super.markLost(psn);
  }

  override onTrimmed(psn: number): boolean {
    const i = psn & SPAN_MASK;
    if (this.state[i] !== PACKET_OUTSTANDING && this.state[i] !== PACKET_RESENT) return false;
    if (this.#entropyOf[i] !== NO_ENTROPY) this.#choice.onTrimmed(this.#entropyOf[i]);
    super.markLost(psn);
    return true;
  }

  override onLoss(first: number, end: number, messageStart: number, next: number, cause: number): number {
    if (cause === LOSS_TIMEOUT) this.#choice.onTimeout(this.#nowNs);
    return super.onLoss(first, end, messageStart, next, cause);
  }
}

export const multipath = defineRecovery({
  name: 'multipath',
  summary: 'spreads packets over many paths by their UDP source ports; detects losses by time',
  parameters: MULTIPATH_TABLE,
  usesSack: true,
  entropies: ({ paths }) => paths,
  efficiency: selectiveRepeat.efficiency!,
  sender: (parameters) => new MultipathSender(parameters),
  receiver: () => new SelectiveRepeatReceiver(),
});

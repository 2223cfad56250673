/**
 * One connection over many paths: each packet has a UDP source port, its entropy, of its own, so that the switches of a network with equal paths spread the
 * packets of one queue pair over all of them. What Ultra Ethernet and MRC do, from parts that are here; compatible with neither.
 *
 *   - Ways: `paths` source ports from that of the flow on. `choice` says which the next packet takes: 0 one for all (ECMP), 1 in turn (spraying), 2 REPS, 3 the
 *     bitmap of penalties. Acknowledgements and READ responses take them in turn.
 *   - Feedback: a data packet says in its trailer which way it took and when it left; the acknowledgement echoes both, and whether the packet was marked
 *     (packet/int-trailer.ts). SACK says what has arrived, as for selective repeat; its bitmap grows to 1,024 bits, because one slow path holds back more than 64.
 *   - Losses are judged by time, as RACK does: on many paths order says nothing. A packet that a switch has cut to its header is known to be lost at once.
 *   - Placement: the receiver keeps what is ahead, in the store of selective repeat, and executes it in order. Messages of a queue pair keep their order, and what a
 *     stranger slips in is compared before it is written; both ask for the store. MRC has neither, and writes each packet where its address says.
 *
 * A port whose source port is fixed, a datagram socket, has one way. Then this is RACK with echoes.
 */

import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { WAYS_MAX } from '../packet/int-trailer.js';
import { LOST, OUTSTANDING, RESENT, SELECTIVE_SPAN, SPAN_MASK } from './packet-accounts.js';
import { PenalizedWays } from './penalized-ways.js';
import { RACK_TABLE, RackSender } from './rack.js';
import { defineRecovery, LOSS_TIMEOUT } from './recovery.js';
import { RecycledWays } from './recycled-ways.js';
import { SelectiveRepeatReceiver, selectiveRepeat } from './selective-repeat.js';
import { OneWay, type WayChoice, WaysInTurn } from './way-choice.js';

/** `choice`: one way, what ECMP makes of a connection. */
export const CHOICE_ECMP = 0;
/** `choice`: all ways in turn. */
export const CHOICE_SPRAY = 1;
/** `choice`: {@link RecycledWays}. */
export const CHOICE_REPS = 2;
/** `choice`: {@link PenalizedWays}. */
export const CHOICE_BITMAP = 3;

const MULTIPATH_TABLE = {
  /** Entropies. 64 as in the Ultra Ethernet Consortium's htsim; more than there are paths, since switches hash them. */
  paths: { default: 64, min: 1, max: WAYS_MAX, whole: true, agreed: true },
  /** 0 ECMP, 1 spraying, 2 REPS, 3 bitmap. */
  choice: { default: CHOICE_REPS, min: CHOICE_ECMP, max: CHOICE_BITMAP, whole: true },
  /** REPS: how long a timeout freezes the ring. */
  freezeNs: { default: 1_000_000, ...LIMITS.timeOrZeroNs },
  ...RACK_TABLE,
} as const satisfies ParameterTable;

type MultipathParameters = ParametersOf<typeof MULTIPATH_TABLE>;

/** Of a packet that has not taken one of our choice. */
const NO_WAY = 0xffff;

function wayChoice({ choice, paths, freezeNs }: MultipathParameters): WayChoice {
  switch (choice) {
    case CHOICE_SPRAY:
      return new WaysInTurn(paths);
    case CHOICE_REPS:
      return new RecycledWays(paths, freezeNs);
    case CHOICE_BITMAP:
      return new PenalizedWays(paths);
    default:
      return new OneWay();
  }
}

/** Losses by time, ways by what became of packets. */
export class MultipathSender extends RackSender {
  override readonly wantsEcho = true;
  readonly #parameters: MultipathParameters;
  #choice: WayChoice;
  /** The way of the newest copy, by slot. */
  readonly #wayOf = new Uint16Array(SELECTIVE_SPAN).fill(NO_WAY);
  #chosen = NO_WAY;
  #nowNs = 0;

  constructor(parameters: MultipathParameters) {
    super(parameters);
    this.#parameters = parameters;
    this.#choice = wayChoice(parameters);
  }

  override reset(psn: number): void {
    super.reset(psn);
    this.#choice = wayChoice(this.#parameters);
    this.#wayOf.fill(NO_WAY);
    this.#chosen = NO_WAY;
  }

  override nextWay(now: number): number {
    this.#chosen = this.#choice.next(now);
    return this.#chosen;
  }

  override onSent(psn: number, psns: number, next: number, now: number): void {
    super.onSent(psn, psns, next, now);
    this.#nowNs = now;
    for (let k = 0; k < psns; k++) this.#wayOf[(psn + k) & SPAN_MASK] = this.#chosen;
    this.#chosen = NO_WAY;
  }

  override onAnswer(now: number): void {
    super.onAnswer(now);
    this.#nowNs = now;
  }

  override onEcho(way: number, isMarked: boolean): void {
    if (way >= this.#parameters.paths) return; // Trailers are not protected by the ICRC.
    if (isMarked) this.#choice.onMarked(way);
    else this.#choice.onGood(way, this.#nowNs);
  }

  protected override markLost(psn: number): void {
    const i = psn & SPAN_MASK;
    if (this.state[i] !== LOST && this.#wayOf[i] !== NO_WAY) this.#choice.onLost(this.#wayOf[i]);
    super.markLost(psn);
  }

  override onTrimmed(psn: number): boolean {
    const i = psn & SPAN_MASK;
    if (this.state[i] !== OUTSTANDING && this.state[i] !== RESENT) return false;
    if (this.#wayOf[i] !== NO_WAY) this.#choice.onTrimmed(this.#wayOf[i]);
    super.markLost(psn);
    return true;
  }

  override onLoss(first: number, end: number, messageStart: number, next: number, cause: number): number {
    if (cause === LOSS_TIMEOUT) this.#choice.onTimeout(this.#nowNs);
    return super.onLoss(first, end, messageStart, next, cause);
  }
}

/** The definition for the registry. */
export const multipath = defineRecovery({
  name: 'multipath',
  summary: 'packets of one connection over many paths by their UDP source ports, losses judged by time',
  parameters: MULTIPATH_TABLE,
  usesSack: true,
  ways: ({ paths }) => paths,
  /** As selective repeat. */
  efficiency: selectiveRepeat.efficiency!,
  sender: (parameters) => new MultipathSender(parameters),
  receiver: () => new SelectiveRepeatReceiver(),
});

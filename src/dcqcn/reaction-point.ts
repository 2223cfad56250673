/**
 * The reaction point of DCQCN: cuts the rate when congestion notifications arrive, and raises it again by a timer and a
 * byte counter.
 *
 * Source: Zhu et al., "Congestion Control for Large-Scale RDMA Deployments", SIGCOMM'15, §3 and §5; the settings are
 * those of mlx5's cc_params. R_C is the current rate, R_T the target rate.
 *
 *   cut R_T = R_C (see clampTargetRate); R_C = R_C (1 - alpha/2); alpha = (1-g) alpha + g; stages to 0; all timers
 *   restart
 *   no CNP for alphaIntervalNs:     alpha = (1-g) alpha
 *   increase   the rate timer or the byte counter ran out, its stage goes up by one; then, with F = fastRecoveryStages:
 *              both stages < F      fast recovery      R_C = (R_C + R_T) / 2
 *              both stages > F      hyper increase     R_T += i R_HAI first, i = the smaller stage - F
 *              else                 additive increase  R_T += R_AI first
 *
 * The limiter exists from the first notification until R_C is back at the line rate; then alpha and everything else is
 * discarded. Invariant: minimumRateBps <= R_C <= linkRateBps, R_T <= linkRateBps, 0 <= alpha <= 1.
 */

import { RoceError } from '../core/errors.js';
import { LIMITS, type ParametersOf, type ParameterTable } from '../core/parameters.js';
import { nextTick } from './notification-point.js';
import { FREE_RUNNING, SINCE_LAST } from './phase.js';
import { defineRateControl, RateControl } from './rate-control.js';

/** Defaults: SIGCOMM'15 at 40 Gb/s. */
export const REACTION_POINT_TABLE = {
  /** Line rate: where flows start, and the ceiling. */
  linkRateBps: { default: 40e9, ...LIMITS.rateBps },
  /** rpg_min_rate: the floor. */
  minimumRateBps: { default: 10e6, ...LIMITS.rateBps },
  /** g of the paper, 1 - dce_tcp_g/1024 of mlx5. */
  gain: { default: 1 / 256, ...LIMITS.share },
  /** Alpha at the first notification: 1 in the paper, initial_alpha_value/1024. */
  initialAlpha: { default: 1, ...LIMITS.share },
  /** tau', dce_tcp_rtt: alpha decays once in this time without a notification. */
  alphaIntervalNs: { default: 55_000, ...LIMITS.timeNs },
  /**
   * 0: alpha rises with each cut, and the timer restarts then (paper). 1: it is updated at each tick of a free-running
   * timer, up if a notification came since the last one, else down (mlx5, HPCC's simulator).
   */
  alphaByTimer: { default: 0, ...LIMITS.flag },
  /** 1: alpha rises before it is used for the cut (ns3-rdma), 0: after (paper). */
  alphaBeforeCut: { default: 0, ...LIMITS.flag },
  /**
   * rate_reduce_monitor_period: notifications closer than this to the last cut are ignored. 0: each one cuts. The
   * default is half of
   * `cnpIntervalNs`: those of an honest receiver count, even if the return path has brought them closer together.
   */
  decreaseIntervalNs: { default: 25_000, ...LIMITS.timeOrZeroNs },
  /**
   * 0: that time counts from the last cut, and a notification after it cuts at once. 1: cuts happen at the ticks of a
   * timer of that period, which the first notification starts: one if a notification came since the last tick (HPCC's
   * simulator). Without an interval every notification cuts at once.
   */
  decreasePhase: { default: SINCE_LAST, ...LIMITS.flag },
  /** Factor of alpha in a cut: 1/2 in the paper, 2^(10 - rpg_gd). */
  decreaseFactor: { default: 0.5, ...LIMITS.share },
  /** 1 - rpg_min_dec_fac: no cut takes more than this share of the rate. */
  maximumDecrease: { default: 0.5, ...LIMITS.share },
  /**
   * rate_to_set_on_first_cnp: the rate after the first notification that a limiter gets, instead of a cut. 0: an
   * ordinary cut.
   */
  firstCnpRateBps: { default: 0, ...LIMITS.rateOrZeroBps },
  /**
   * 1: a limiter back at the line rate is discarded, with its alpha (paper, QCN). 0: it lives as long as the flow
   * (HPCC's simulator).
   */
  forgetsAtLineRate: { default: 1, ...LIMITS.flag },
  /** T, rpg_time_reset: period of the rate timer. */
  rateTimerNs: { default: 55_000, ...LIMITS.timeNs },
  /**
   * B, rpg_byte_reset: bytes sent between two events of the byte counter. 0: there is none, and only the timer's stage
   * counts.
   */
  byteCounterBytes: { default: 10e6, ...LIMITS.bytesOrZero },
  /** F, rpg_threshold. Stages are compared after they went up. */
  fastRecoveryStages: { default: 5, min: 1, max: 1000, whole: true },
  additiveIncreaseBps: { default: 40e6, ...LIMITS.rateBps },
  /** R_HAI, rpg_hai_rate. 0: additive increase indefinitely, as in the fluid model. */
  hyperIncreaseBps: { default: 0, ...LIMITS.rateOrZeroBps },
  /** 1: the i-th hyper increase adds i R_HAI (paper). 0: each adds R_HAI (HPCC's simulator). */
  hyperIncreaseGrows: { default: 1, ...LIMITS.flag },
  /** clamp_tgt_rate. 1: every cut sets R_T = R_C (paper, fluid model). 0: see the next one. */
  clampTargetRate: { default: 1, ...LIMITS.flag },
  /**
   * clamp_tgt_rate_after_time_inc, when the former is 0. 1: a cut sets R_T = R_C if there was any increase since the
   * last cut. 0: only if the byte counter ran out since then (QCN).
   */
  clampTargetRateAfterTimeIncrease: { default: 1, ...LIMITS.flag },
} as const satisfies ParameterTable;

export type ReactionPointParameters = ParametersOf<typeof REACTION_POINT_TABLE>;

const ARRIVED_BPS = 1;
/**
 * Most timer events from the lowest to the line rate, which a flow may have to process after a long idle time.
 */
const INCREASES_MAX = 1e6;
const NEVER = Number.POSITIVE_INFINITY;

export class ReactionPoint extends RateControl {
  override readonly usesEcn = true;
  readonly #p: ReactionPointParameters;
  #limited = false;
  #current: number;
  #target: number;
  /** Alpha when it rose last, and how often it has decayed since: independent of reads in between. */
  #alphaRaised: number;
  #alphaDecays = 0;
  #timeStage = 0;
  #byteStage = 0;
  #bytesLeft = 0;
  #rateTimerNs = NEVER;
  #alphaTimerNs = NEVER;
  /** alphaByTimer: a notification came since the last tick. */
  #notified = false;
  #cutNs = Number.NEGATIVE_INFINITY;
  /** decreasePhase: when the timer of cuts started, and the tick that cuts next. */
  #cutTimerStartNs = 0;
  #cutDueNs = NEVER;

  constructor(parameters: ReactionPointParameters) {
    const { linkRateBps, minimumRateBps, additiveIncreaseBps, firstCnpRateBps, forgetsAtLineRate } = parameters;
    if (minimumRateBps > linkRateBps) {
      throw new RoceError('ERR_ROCE_CONFLICT', 'DCQCN minimumRateBps is above linkRateBps');
    }
    if (additiveIncreaseBps < linkRateBps / INCREASES_MAX) {
      throw new RoceError(
        'ERR_ROCE_CONFLICT',
        'DCQCN additiveIncreaseBps is too small for linkRateBps',
        'a millionth of it at least',
      );
    }
    if (firstCnpRateBps >= linkRateBps && forgetsAtLineRate === 1) {
      throw new RoceError(
        'ERR_ROCE_CONFLICT',
        'DCQCN may never slow down: the first notification sets the line rate, at which the limiter is discarded',
        'set forgetsAtLineRate to 0, or firstCnpRateBps below linkRateBps',
      );
    }
    super();
    this.#p = parameters;
    this.#current = linkRateBps;
    this.#target = linkRateBps;
    this.#alphaRaised = parameters.initialAlpha;
  }

  override rateBps(now: number): number {
    this.#advance(now);
    return this.#current;
  }

  override targetRateBps(now: number): number {
    this.#advance(now);
    return this.#target;
  }

  override alpha(now: number): number {
    this.#advance(now);
    return this.#alpha;
  }

  override onSent(wireBytes: number, now: number): void {
    if (!this.#limited) return;
    this.#advance(now);
    this.#bytesLeft -= wireBytes;
    while (this.#limited && this.#bytesLeft <= 0) {
      this.#bytesLeft += this.#byteBudget;
      this.#byteStage++;
      this.#increase();
    }
  }

  override onCnp(now: number): boolean {
    this.#advance(now);
    this.#notified = true;
    const { decreaseIntervalNs, decreasePhase } = this.#p;
    if (decreasePhase === FREE_RUNNING && decreaseIntervalNs > 0 && this.#limited) return this.#cutAtTick(now);
    if (now - this.#cutNs < decreaseIntervalNs) return false;
    this.#cut(now);
    return true;
  }

  /** All notifications until the next tick are one cut. */
  #cutAtTick(now: number): boolean {
    if (this.#cutDueNs !== NEVER) return false;
    this.#cutDueNs = nextTick(this.#cutTimerStartNs, this.#p.decreaseIntervalNs, now);
    return true;
  }

  get #byteBudget(): number {
    return this.#p.byteCounterBytes === 0 ? NEVER : this.#p.byteCounterBytes;
  }

  /** Runs the timers up to `now`, and the cut of a tick in between at its time. */
  #advance(now: number): void {
    const dueNs = this.#cutDueNs;
    if (now >= dueNs) {
      this.#runTimers(dueNs);
      this.#cutDueNs = NEVER;
      this.#cut(dueNs);
    }
    this.#runTimers(now);
  }

  /** They use separate state, so each may run ahead of the other. */
  #runTimers(now: number): void {
    if (now >= this.#alphaTimerNs) this.#ageAlpha(now);
    if (this.#p.forgetsAtLineRate === 0 && this.#current === this.#p.linkRateBps) this.#restAtLineRate(now);
    while (now >= this.#rateTimerNs) {
      this.#rateTimerNs += this.#p.rateTimerNs;
      this.#timeStage++;
      this.#increase();
    }
  }

  /** At the line rate the rate timer only counts. */
  #restAtLineRate(now: number): void {
    if (now < this.#rateTimerNs) return;
    const ticks = 1 + Math.floor((now - this.#rateTimerNs) / this.#p.rateTimerNs);
    this.#rateTimerNs += ticks * this.#p.rateTimerNs;
    this.#timeStage += ticks;
  }

  /** All ticks of the alpha timer up to `now`: a notification counts for the first, the others decay. */
  #ageAlpha(now: number): void {
    const { alphaIntervalNs } = this.#p;
    const ticks = 1 + Math.floor((now - this.#alphaTimerNs) / alphaIntervalNs);
    this.#alphaTimerNs += ticks * alphaIntervalNs;
    const rises = this.#p.alphaByTimer === 1 && this.#notified;
    this.#notified = false;
    if (rises) this.#raiseAlpha();
    this.#alphaDecays += rises ? ticks - 1 : ticks;
  }

  get #alpha(): number {
    return this.#alphaRaised * (1 - this.#p.gain) ** this.#alphaDecays;
  }

  #raiseAlpha(): void {
    this.#alphaRaised = (1 - this.#p.gain) * this.#alpha + this.#p.gain;
    this.#alphaDecays = 0;
  }

  #cut(now: number): void {
    const p = this.#p;
    const isFirst = !this.#limited;
    if (this.#clamps) this.#target = this.#current;
    if (p.alphaByTimer === 0 && p.alphaBeforeCut === 1) this.#raiseAlpha();
    if (isFirst && p.firstCnpRateBps > 0) this.#current = Math.min(this.#current, p.firstCnpRateBps);
    else this.#current *= 1 - Math.min(this.#alpha * p.decreaseFactor, p.maximumDecrease);
    this.#current = Math.max(this.#current, p.minimumRateBps);
    if (p.alphaByTimer === 0 && p.alphaBeforeCut === 0) this.#raiseAlpha();
    if (isFirst || p.alphaByTimer === 0) this.#alphaTimerNs = now + p.alphaIntervalNs;
    if (isFirst) this.#startCutTimer(now);
    this.#limited = true;
    this.#timeStage = 0;
    this.#byteStage = 0;
    this.#bytesLeft = this.#byteBudget;
    this.#rateTimerNs = now + p.rateTimerNs;
    this.#cutNs = now;
  }

  /** A first notification that cut nothing counts for the first tick (HPCC's simulator). */
  #startCutTimer(now: number): void {
    const { decreasePhase, decreaseIntervalNs, firstCnpRateBps } = this.#p;
    this.#cutTimerStartNs = now;
    if (decreasePhase === FREE_RUNNING && decreaseIntervalNs > 0 && firstCnpRateBps > 0)
      this.#cutDueNs = now + decreaseIntervalNs;
  }

  /** Whether a cut now takes the current rate for the new target. */
  get #clamps(): boolean {
    if (this.#p.clampTargetRate === 1) return true;
    return this.#byteStage > 0 || (this.#p.clampTargetRateAfterTimeIncrease === 1 && this.#timeStage > 0);
  }

  #increase(): void {
    const p = this.#p;
    const highest = Math.max(this.#timeStage, this.#byteStage);
    const lowest = p.byteCounterBytes === 0 ? this.#timeStage : Math.min(this.#timeStage, this.#byteStage);
    const beyond = lowest - p.fastRecoveryStages;
    if (highest >= p.fastRecoveryStages) {
      const hyper = beyond > 0 && p.hyperIncreaseBps > 0;
      const step = hyper ? p.hyperIncreaseBps * (p.hyperIncreaseGrows === 1 ? beyond : 1) : p.additiveIncreaseBps;
      this.#target = Math.min(this.#target + step, p.linkRateBps);
    }
    this.#current = (this.#current + this.#target) / 2;
    if (p.linkRateBps - this.#current >= ARRIVED_BPS) return;
    if (p.forgetsAtLineRate === 1) this.#release();
    else this.#current = p.linkRateBps;
  }

  /** Back at the line rate: the limiter is gone until the next notification. */
  #release(): void {
    this.#limited = false;
    this.#current = this.#p.linkRateBps;
    this.#target = this.#p.linkRateBps;
    this.#alphaRaised = this.#p.initialAlpha;
    this.#alphaDecays = 0;
    this.#notified = false;
    this.#timeStage = 0;
    this.#byteStage = 0;
    this.#rateTimerNs = NEVER;
    this.#alphaTimerNs = NEVER;
    this.#cutDueNs = NEVER;
  }
}

export const dcqcn = defineRateControl({
  name: 'dcqcn',
  summary: 'reduces the rate on congestion notifications, which answer ECN marks',
  parameters: REACTION_POINT_TABLE,
  create: (parameters) => new ReactionPoint(parameters),
});

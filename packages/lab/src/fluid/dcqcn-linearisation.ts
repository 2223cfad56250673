/**
 * DCQCN's feedback loop linearised at its fixed point, twice:
 *
 * - `authors`: the closed form behind figure 3 of CoNEXT'16. It works at the approximate p* and puts alpha's pole at g
 *   R instead of g / tau', which makes it pessimistic (it calls ten flows unstable from about 21 us, the model itself
 *   loses stability at 62 us).
 * - `exact`: the Jacobian of the model's own equations at the exact p*, delayed rate included. The sign of its margin
 *   is the stability of the model.
 *
 * Both are the symmetric mode: all flows move together, dq/dt = N Rc - C. Packets, packets/s, seconds.
 */

import { checkFlows, checkNumber } from '../check-arguments.js';
import {
  add,
  type Complex,
  type Complex3x3,
  complex,
  determinant3,
  divide,
  multiply,
  product,
  scale,
  subtract,
  sum,
  unitPhasor,
} from './complex.js';
import { DcqcnEvents } from './dcqcn-events.js';
import { approximateMarkProbability, exactMarkProbability, targetRate } from './dcqcn-fixed-point.js';
import { type DcqcnInPackets, type DcqcnParameters, dcqcnInPackets } from './dcqcn-parameters.js';
import { dcqcnDerivatives } from './dcqcn-rate-equations.js';
import { DELAY_SECONDS_MAX, type OpenLoop } from './phase-margin.js';
import { checkPiGains, type PiGains, piResponse } from './pi-controller.js';

/** The published linearisation; RED marking only. */
export function authorsDcqcnLoop(parameters: DcqcnParameters, flows: number, delaySeconds: number): OpenLoop {
  checkFlows(flows);
  checkNumber('delaySeconds', delaySeconds, 0, DELAY_SECONDS_MAX);
  const packets = dcqcnInPackets(parameters);
  const { capacity: C, gain: g, additiveIncrease: rAi, fastRecoveryStages: F, slope } = packets;
  const N = flows;
  const R = C / N;
  const p = approximateMarkProbability(packets, flows);
  const events = new DcqcnEvents(packets);
  events.update(p, R);
  const alpha = events.alphaMarkProbability;
  const Rt = targetRate(packets, R, events);
  const A = 1 / packets.byteCounter + 1 / (packets.rateTimer * R);
  const h = 1 / 2 + A / 4;
  const k = N * slope;
  // Names as in the derivation: the coefficients of the linearised rate equations, AA, BB, DD, FF, GG on the delayed
  // side of the loop. By the model's own equations BB (what the delayed rate does) and CC (what the present rate does)
  // would change places. The published margins come out this way round only.
  const AA = ((-(R ** 2) * alpha) / 2 - h * R * Rt + h * R ** 2) * k;
  const BB = (-p * R * alpha) / 2 - (A * R) / 2 + h * p * R;
  const CC = (-p * R * alpha) / 2 - (A * R) / 2 + (A * Rt) / 2 + h * p * R - h * p * Rt;
  const DD = (-p * R ** 2 * g * C * k) / 2;
  const X = (A * R) / 2 - h * p * R;
  const EE = X * (p * R + A * rAi);
  const FF = X * (-p * Rt + p * R + A * rAi - (1 + 2 * F + A / 2) * rAi * p);
  const GG = X * (-R * Rt + R ** 2 - (1 + 2 * F + A / 2) * rAi * R) * k;
  return {
    delaySeconds,
    response(omega) {
      const s = complex(0, omega);
      const alphaPole = complex(g * C, N * omega);
      const targetPole = complex(p * R, omega);
      const numerator = sum(
        product(alphaPole, targetPole, add(complex(AA), scale(s, BB))),
        scale(targetPole, DD),
        multiply(alphaPole, add(scale(s, FF), complex(GG))),
      );
      const denominator = sum(
        scale(product(s, s, alphaPole, targetPole), -1),
        scale(product(s, alphaPole, targetPole), CC),
        scale(multiply(s, alphaPole), EE),
      );
      return multiply(divide(numerator, denominator), unitPhasor(-omega * delaySeconds));
    },
  };
}

/**
 * The loop of the model itself: L(s) = -(N/s) M(s) e^(-s delay) [(sI - A0 - Ad e^(-s delay) e1')^-1 Bp]_1, where M is
 * the marker. M is the slope of RED, or a PI controller when `pi` is given.
 */
export function exactDcqcnLoop(
  parameters: DcqcnParameters,
  flows: number,
  delaySeconds: number,
  pi?: PiGains,
): OpenLoop {
  checkNumber('delaySeconds', delaySeconds, 0, DELAY_SECONDS_MAX);
  if (pi !== undefined) checkPiGains(pi);
  const packets = dcqcnInPackets(parameters);
  const { state, delayed, marking } = jacobian(packets, flows);
  return {
    delaySeconds,
    response(omega) {
      const s = complex(0, omega);
      const delay = unitPhasor(-omega * delaySeconds);
      const matrix = (firstColumn: (row: number) => Complex): Complex3x3 =>
        [0, 1, 2].map((row) => [
          firstColumn(row),
          complex(-state[row][1], row === 1 ? omega : 0),
          complex(-state[row][2], row === 2 ? omega : 0),
        ]);
      const system = matrix((row) =>
        subtract(complex(-state[row][0], row === 0 ? omega : 0), scale(delay, delayed[row])),
      );
      // Cramer's rule: only the first component, the current rate, feeds the queue.
      const rateResponse = divide(determinant3(matrix((row) => complex(marking[row]))), determinant3(system));
      const marker = pi === undefined ? complex(packets.slope) : piResponse(pi, parameters.packetBytes, s);
      return scale(product(divide(rateResponse, s), marker, delay), -flows);
    },
  };
}

interface Jacobian {
  readonly state: readonly (readonly number[])[];
  readonly delayed: readonly number[];
  readonly marking: readonly number[];
}

/** Relative step of the central differences: their error is near its minimum, about 1e-10, here. */
const RELATIVE_STEP = 1e-5;

function jacobian(packets: DcqcnInPackets, flows: number): Jacobian {
  const events = new DcqcnEvents(packets);
  const p = exactMarkProbability(packets, flows);
  const rate = packets.capacity / flows;
  events.update(p, rate);
  // Arguments of f: Rc, Rt, alpha, delayed Rc, delayed p.
  const point = [rate, targetRate(packets, rate, events), events.alphaMarkProbability, rate, p];
  const evaluate = (at: readonly number[]): number[] => {
    const derivatives = new Float64Array(3);
    events.update(at[4], at[3]);
    dcqcnDerivatives(packets, events, at[0], at[1], at[2], derivatives);
    return [...derivatives];
  };
  const column = (argument: number): number[] => {
    const step = point[argument] * RELATIVE_STEP;
    const moved = (by: number): number[] => evaluate(point.map((value, i) => (i === argument ? value + by : value)));
    const above = moved(step);
    const below = moved(-step);
    return above.map((value, i) => (value - below[i]) / (2 * step));
  };
  const columns = [column(0), column(1), column(2)];
  return {
    state: [0, 1, 2].map((row) => columns.map((values) => values[row])),
    delayed: column(3),
    marking: column(4),
  };
}

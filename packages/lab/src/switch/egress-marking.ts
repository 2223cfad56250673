import { type RandomSource, RoceError } from 'rocev2/internal/core';
import { PRIORITIES } from 'rocev2/internal/packet';
import { type Marker, NO_MARKING, newMarker } from './marking.js';
import { priorityMask } from './priorities.js';
import type { MarkingConfig } from './switch-config.js';

export const KEEP = 0;
export const MARK = 1;
const MARK_OR_DROP = 2;

const DEFAULT_PRIORITIES = [0, 1, 2, 3, 4, 5];

export class EgressMarking {
  readonly #departing: Marker[] = [];
  readonly #arriving: Marker[] = [];
  readonly #verdicts: Uint8Array;

  constructor(ports: ReadonlyArray<MarkingConfig | undefined>, random: RandomSource | undefined) {
    this.#verdicts = Uint8Array.from(ports, (config) => (config?.dropNotEct === true ? MARK_OR_DROP : MARK));
    for (const config of ports) {
      const priorities = config === undefined ? 0 : priorityMask(config.priorities ?? DEFAULT_PRIORITIES);
      for (let priority = 0; priority < PRIORITIES; priority++) {
        const isMarked = config !== undefined && (priorities & (1 << priority)) !== 0;
        const marker = isMarked ? newMarker(checked(config), needed(random)) : NO_MARKING;
        this.#departing.push(config?.at === 'enqueue' ? NO_MARKING : marker);
        this.#arriving.push(config?.at === 'enqueue' ? marker : NO_MARKING);
      }
    }
  }

  departing(port: number, priority: number, queueBytes: number, nowNs: number): number {
    return this.#departing[port * PRIORITIES + priority].decide(queueBytes, nowNs) ? this.#verdicts[port] : KEEP;
  }

  arriving(port: number, priority: number, queueBytes: number, nowNs: number): number {
    return this.#arriving[port * PRIORITIES + priority].decide(queueBytes, nowNs) ? this.#verdicts[port] : KEEP;
  }
}

function checked(config: MarkingConfig): MarkingConfig {
  if (config.kind === 'red') {
    const { kminBytes, kmaxBytes, pmax } = config;
    if (!(kminBytes >= 0 && kmaxBytes >= kminBytes && pmax >= 0 && pmax <= 1)) {
      throw new RoceError(
        'ERR_ROCE_OUT_OF_RANGE',
        `Kmin ${kminBytes}, Kmax ${kmaxBytes} and Pmax ${pmax} describe no marking`,
        'Kmin is at most Kmax, and Pmax is 0 to 1',
      );
    }
  }
  return config;
}

function needed(random: RandomSource | undefined): RandomSource {
  if (random !== undefined) return random;
  throw new RoceError('ERR_ROCE_INVALID_ARGUMENT', 'marking needs a source of random numbers', 'pass `random`');
}

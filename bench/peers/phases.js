// @ts-check
/** The phases of a measurement of messages one way: time on the clock and of the processor in each of them, at one end. */

/** @typedef {'warmUp' | 'counted' | 'settling' | 'steady'} PhaseName */
/** @typedef {{seconds: number, cpuSeconds: number}} PhaseTime */

/**
 * In order: a warm-up, what counts, and for those who want it the steady state, as many messages again behind some that settle.
 * @param {{warmUp: number, messages: number, settling?: number}} options
 * @returns {Array<{name: PhaseName, messages: number}>}
 */
export function phasesOf({ warmUp, messages, settling = 0 }) {
  const first = /** @type {const} */ ([
    { name: 'warmUp', messages: warmUp },
    { name: 'counted', messages },
  ]);
  if (settling === 0) return [...first];
  return [...first, { name: 'settling', messages: settling }, { name: 'steady', messages }];
}

/** Takes the times of one process: user and system time of all its threads. */
export class PhaseTimes {
  /** @type {Partial<Record<PhaseName, PhaseTime>>} */
  all = {};
  /** @type {PhaseName | undefined} */
  #name;
  #startMs = 0;
  #startCpu = process.cpuUsage();

  /** The phase before it ends. @param {PhaseName} name */
  begin(name) {
    this.end();
    this.#name = name;
    this.#startMs = performance.now();
    this.#startCpu = process.cpuUsage();
  }

  /** The last phase ends. */
  end() {
    if (this.#name === undefined) return;
    const { user, system } = process.cpuUsage(this.#startCpu);
    this.all[this.#name] = { seconds: (performance.now() - this.#startMs) / 1000, cpuSeconds: (user + system) / 1e6 };
    this.#name = undefined;
  }
}

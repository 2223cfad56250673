/** GETs at a fixed pace, whether or not the ones before were answered: so a stop of the owner delays all GETs that are due during it. */

export const IDLE_MS = 2000;
export const BUSY_MS = 2000;
export const KEYS = 1000;
const PER_SECOND = 200;
const TICK_MS = 5;

export const keyFor = (key) => `key:${key}`;
export const valueFor = (key) => `value ${key}`;

/** Whether the owner computes `ms` after its start. */
export const isBusy = (ms) => ms >= 0 && ms % (IDLE_MS + BUSY_MS) >= IDLE_MS;

export class PacedGets {
  #get;
  #samples = [];
  #failure;
  #asked = 0;
  #startMs = 0;
  #timer;

  /** `get` resolves to the value of a key. */
  constructor(get) {
    this.#get = get;
  }

  start() {
    this.#startMs = Date.now();
    this.#timer = setInterval(() => {
      const due = Math.floor(((Date.now() - this.#startMs) / 1000) * PER_SECOND);
      for (; this.#asked < due; this.#asked++) this.#ask(this.#asked % KEYS);
    }, TICK_MS);
  }

  async #ask(key) {
    const [askedMs, begin] = [Date.now(), performance.now()];
    const sample = { askedMs, begin, ms: undefined };
    this.#samples.push(sample);
    try {
      if ((await this.#get(keyFor(key))) !== valueFor(key))
        throw new Error(`the value of key ${key} is that of another key`);
      sample.ms = performance.now() - begin;
    } catch (error) {
      this.#failure ??= error;
    }
  }

  /** All samples. A GET without an answer counts with the time that it has waited. Throws for a wrong value or a failed GET. */
  end() {
    clearInterval(this.#timer);
    if (this.#failure !== undefined) throw this.#failure;
    return this.#samples.map(({ askedMs, begin, ms }) => ({ askedMs, ms: ms ?? performance.now() - begin }));
  }
}

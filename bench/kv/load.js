// @ts-check
/**
 * The load of one reader. `full`: so many GETs in flight, the next one with each answer. `paced`: so many GETs a second, whether or not the ones before were
 * answered. A SET goes beside the GETs and nobody waits for it: a blocked owner executes none, and that must not hide what GETs take.
 */

import { Histogram } from '../../build/src/verbs/estats/histogram.js';
import { check, keyFor, valueFor } from './values.js';

const SETS_OPEN_MAX = 64;
const TICK_MS = 2;

const nowNs = () => performance.now() * 1e6;

/** xorshift32: as quick as nothing. */
function dice(/** @type {number} */ seed) {
  let state = (seed * 2654435761) | 1;
  return (/** @type {number} */ below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/**
 * @param {{get: (key: string) => Promise<Uint8Array | undefined | null>, set: (key: string, value: Buffer) => Promise<unknown>}} store
 * @param {{keys: number, valueBytes: number, gets: number, seconds: number, load: 'full' | 'paced', depth: number, rate: number, seed: number}} parameters
 */
export async function run(store, { keys, valueBytes, gets: share, seconds, load, depth, rate, seed }) {
  const next = dice(seed);
  const latency = new Histogram();
  const open = new Set();
  let [sets, setsOpen] = [0, 0];
  let isOver = false;
  /** @type {unknown} */
  let failure;
  const fail = (/** @type {unknown} */ error) => {
    failure ??= error;
  };
  const one = async () => {
    if (setsOpen < SETS_OPEN_MAX && next(1_000_000) >= share * 1_000_000) {
      const index = next(keys);
      setsOpen++;
      store.set(keyFor(index), valueFor(index, valueBytes)).then(() => {
        setsOpen--;
        if (!isOver) sets++;
      }, fail);
    }
    const index = next(keys);
    const get = { askedNs: nowNs() };
    open.add(get);
    const value = await store.get(keyFor(index));
    open.delete(get);
    if (isOver) return;
    latency.record(nowNs() - get.askedNs);
    check(index, valueBytes, value);
  };
  const startNs = nowNs();
  const endNs = startNs + seconds * 1e9;
  const over = new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  if (load === 'full') {
    const lane = async () => {
      while (nowNs() < endNs && failure === undefined) await one();
    };
    for (let k = 0; k < depth; k++) lane().catch(fail);
    await over;
  } else {
    let asked = 0;
    const timer = setInterval(() => {
      const due = Math.floor(((nowNs() - startNs) / 1e9) * rate);
      for (; asked < due; asked++) one().catch(fail);
    }, TICK_MS);
    await over;
    clearInterval(timer);
  }
  isOver = true;
  const tookNs = nowNs() - startNs;
  const answered = latency.count;
  // What was not answered has taken at least this long.
  for (const { askedNs } of open) latency.record(nowNs() - askedNs);
  if (failure !== undefined) throw failure;
  const { p50Ns, p99Ns } = latency.summary();
  return {
    getsPerSecond: (answered / tookNs) * 1e9,
    setsPerSecond: (sets / tookNs) * 1e9,
    p50Us: p50Ns / 1e3,
    p99Us: p99Ns / 1e3,
  };
}

/** One fuzz run: an attacker and a victim from a seed, so many datagrams, and everything checked after every burst. */

import { SeededRandom } from '../../src/core/random.js';
import type { CounterName } from '../../src/memory/ring/counters.js';
import { Dice } from '../support/dice.js';
import { Attacker } from './attacker.js';
import { Victim } from './victim.js';

export interface FuzzReport {
  readonly failures: readonly string[];
  readonly datagrams: number;
  readonly emitted: number;
  /** Queue pairs that the attack broke and that were set up again. */
  readonly broken: number;
  readonly counters: Readonly<Record<CounterName, number>>;
}

/** What one seed of the suites stands for. */
export const DATAGRAMS_PER_SEED = 25_000;
const BURST_DATAGRAMS = 30;
/** What a burst may set in motion before the next: a NIC that answers for ever is a failure. */
const EVENTS_PER_BURST_MAX = 200_000;

/** `tamper` may break the victim on purpose: tests of the checks themselves do. */
export async function fuzzNic(
  seed: number,
  datagrams: number,
  tamper: (victim: Victim) => unknown = () => {},
): Promise<FuzzReport> {
  const random = new SeededRandom(seed);
  const victim = await Victim.create(seed);
  const attacker = new Attacker(random.stream('attacker'), victim);
  const pace = new Dice(random.stream('pace'));
  const { host, events, failures } = victim;
  await tamper(victim);
  let received = 0;
  while (received < datagrams && failures.length === 0) {
    await victim.tend();
    for (let n = 0; n < BURST_DATAGRAMS && received < datagrams; n++) {
      const datagram = attacker.next();
      try {
        host.receive(datagram);
        if (pace.chance(0.3))
          events.run({ untilNs: events.nowNs + pace.int(0, 5_000), eventsMax: EVENTS_PER_BURST_MAX });
      } catch (error) {
        failures.push(`datagram ${received} (${Buffer.from(datagram.bytes).toString('hex')}) threw ${error}`);
      }
      received++;
    }
    const untilNs = events.nowNs + Math.floor(pace.logUniform(100, 3e6));
    if (events.run({ untilNs, eventsMax: EVENTS_PER_BURST_MAX }) === EVENTS_PER_BURST_MAX)
      failures.push('never comes to rest');
    victim.checkMemory();
    victim.checkCounters(received);
  }
  const { emitted, broken } = victim;
  return { failures, datagrams: received, emitted, broken, counters: victim.device.counters() };
}
